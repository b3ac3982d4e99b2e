import { createECDH, createPrivateKey, createPublicKey, type KeyObject, X509Certificate } from 'node:crypto';
import type { ProviderSettings } from './provider-settings.ts';

/**
 * Pure. What is wrong with the keys of an entry of the file, without anything of them. Else it would be found out by
 * the first message.
 */
export function keyFaults(settings: ProviderSettings): readonly string[] {
  switch (settings.kind) {
    case 'smtp': {
      const key = settings.dkim && privateKeyOf(settings.dkim.privateKey);
      return [
        ...certificateFaults(settings),
        ...faultUnless(settings.dkim === undefined || isOfType(key, ['rsa', 'ed25519']), {
          name: 'dkim.privateKey',
          what: 'a private key of RSA or Ed25519 as PEM',
        }),
      ];
    }
    case 'sendgrid': {
      const { notificationKey } = settings;
      return faultUnless(notificationKey === undefined || isPublicKey(notificationKey), {
        name: 'notificationKey',
        what: 'the public key that SendGrid shows, in base64',
      });
    }
    case 'fcm':
      return faultUnless(isOfType(privateKeyOf(settings.privateKey), ['rsa']), {
        name: 'privateKey',
        what: 'a private key of RSA as PEM (PKCS #8)',
      });
    case 'apns':
      return faultUnless(isOfType(privateKeyOf(settings.privateKey), ['ec']), {
        name: 'privateKey',
        what: 'a private key of P-256 as PEM (PKCS #8)',
      });
    case 'webpush':
      return vapidFaults(settings.vapid);
    case 'smpp':
      return certificateFaults(settings);
    case 'twilio':
    case 'bulksms':
    case 'clickatell':
      // Their credentials are words that only they can judge.
      return [];
    default:
      return settings satisfies never;
  }
}

interface Expected {
  readonly name: string;
  readonly what: string;
}

function faultUnless(isRight: boolean, { name, what }: Expected): readonly string[] {
  return isRight ? [] : [`${name} must be ${what}`];
}

function certificateFaults({ ca }: { readonly ca?: string }): readonly string[] {
  return faultUnless(ca === undefined || isCertificate(ca), { name: 'ca', what: 'one or more certificates as PEM' });
}

/** The first one: those that follow are read when they are needed. */
function isCertificate(pem: string): boolean {
  try {
    return new X509Certificate(pem).subject !== '';
  } catch {
    return false;
  }
}

function privateKeyOf(pem: string): KeyObject | undefined {
  try {
    return createPrivateKey(pem);
  } catch {
    return undefined;
  }
}

function isOfType(key: KeyObject | undefined, types: readonly string[]): boolean {
  const curve = key?.asymmetricKeyDetails?.namedCurve ?? 'prime256v1';
  return types.includes(key?.asymmetricKeyType ?? '') && curve === 'prime256v1';
}

function isPublicKey(base64: string): boolean {
  try {
    const key = createPublicKey({ key: Buffer.from(base64, 'base64'), format: 'der', type: 'spki' });
    return isOfType(key, ['ec']);
  } catch {
    return false;
  }
}

interface Vapid {
  readonly subject: string;
  readonly publicKey: string;
  readonly privateKey: string;
}

/** RFC 8292, sections 2.1 and 3.2. */
function vapidFaults({ subject, publicKey, privateKey }: Vapid): readonly string[] {
  const protocol = URL.parse(subject)?.protocol ?? '';
  return [
    ...faultUnless(['https:', 'mailto:'].includes(protocol), {
      name: 'vapid.subject',
      what: 'a URL of https or mailto',
    }),
    ...faultUnless(publicPointOf(privateKey) === publicKey, {
      name: 'vapid.publicKey and vapid.privateKey',
      what: 'a pair of keys of P-256 in base64url without padding',
    }),
  ];
}

/** @returns undefined where it is no private key. */
function publicPointOf(privateKey: string): string | undefined {
  const bytes = Buffer.from(privateKey, 'base64url');
  if (bytes.length !== 32 || bytes.toString('base64url') !== privateKey) return undefined;
  try {
    const pair = createECDH('prime256v1');
    pair.setPrivateKey(bytes);
    return pair.getPublicKey('base64url');
  } catch {
    return undefined;
  }
}
