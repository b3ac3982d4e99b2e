import { generateKeyPairSync } from 'node:crypto';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { errorMessage } from '@rollcall/platform/errors.ts';
import { runProgram } from './processes.ts';

/** Paths of the PEM files by which a client knows the API server, and shows who it is. */
export interface ClientIdentity {
  readonly ca: string;
  readonly certificate: string;
  readonly key: string;
}

/** Paths of PEM files. */
export interface Certificates {
  readonly ca: string;
  readonly serverCertificate: string;
  readonly serverKey: string;
  /** A client of the group system:masters, for whom the API server has no limits. */
  readonly admin: ClientIdentity;
  readonly serviceAccountPrivateKey: string;
  readonly serviceAccountPublicKey: string;
}

/**
 * Makes a certificate authority, the API server's and the admin's certificate, and the key pair for
 * service-account tokens in the directory. Valid for ten years: they live as long as the cluster.
 *
 * @throws when OpenSSL 3 is not on the PATH.
 */
export async function createCertificates(directory: string): Promise<Certificates> {
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const file = (name: string): string => join(directory, name);
  await createAuthority(file('ca'), 'rollcall-local-ca');
  const names = 'DNS:localhost,DNS:kubernetes,DNS:kubernetes.default.svc,IP:127.0.0.1,IP:10.96.0.1';
  const authority = file('ca');
  await Promise.all([
    createCertificate({ file: file('server'), authority, subject: '/CN=kube-apiserver', names }),
    createCertificate({ file: file('admin'), authority, subject: '/O=system:masters/CN=admin' }),
    createServiceAccountKeys(file('service-accounts')),
  ]);
  return {
    ca: file('ca.crt'),
    serverCertificate: file('server.crt'),
    serverKey: file('server.key'),
    admin: { ca: file('ca.crt'), certificate: file('admin.crt'), key: file('admin.key') },
    serviceAccountPrivateKey: file('service-accounts.key'),
    serviceAccountPublicKey: file('service-accounts.pub'),
  };
}

/**
 * Makes the certificate authority `<file>.crt` and `<file>.key`.
 *
 * @throws as {@link createCertificates}.
 */
export async function createAuthority(file: string, commonName: string): Promise<void> {
  await openssl([
    ...selfSigned(file, `/CN=${commonName}`),
    ...extensions(['basicConstraints=critical,CA:TRUE', 'keyUsage=critical,keyCertSign,cRLSign']),
  ]);
}

export interface CertificateOptions {
  /** Path without its ending: `<file>.crt` and `<file>.key` are written. */
  readonly file: string;
  /** Path of the authority, likewise. */
  readonly authority: string;
  /** Such as `/O=system:masters/CN=admin`. */
  readonly subject: string;
  /**
   * A server's names and addresses, such as `DNS:localhost,IP:127.0.0.1`. Without them it is a
   * client's certificate.
   */
  readonly names?: string;
}

/**
 * Makes a key and a certificate that the authority has signed.
 *
 * @throws as {@link createCertificates}.
 */
export async function createCertificate({ file, authority, subject, names }: CertificateOptions): Promise<void> {
  const usage =
    names === undefined ? ['extendedKeyUsage=clientAuth'] : ['extendedKeyUsage=serverAuth', `subjectAltName=${names}`];
  await openssl([
    ...selfSigned(file, subject),
    '-CA',
    `${authority}.crt`,
    '-CAkey',
    `${authority}.key`,
    ...extensions(['basicConstraints=critical,CA:FALSE', ...usage]),
  ]);
}

/** Makes the key pair for service-account tokens, `<file>.key` and `<file>.pub`. */
export async function createServiceAccountKeys(file: string): Promise<void> {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  await writeFile(`${file}.key`, privateKey.export({ type: 'sec1', format: 'pem' }), { mode: 0o600 });
  await writeFile(`${file}.pub`, publicKey.export({ type: 'spki', format: 'pem' }));
}

const NEW_CERTIFICATE = 'req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 3650'.split(' ');

function selfSigned(file: string, subject: string): string[] {
  return [...NEW_CERTIFICATE, '-keyout', `${file}.key`, '-out', `${file}.crt`, '-subj', subject];
}

function extensions(values: readonly string[]): string[] {
  return values.flatMap((value) => ['-addext', value]);
}

async function openssl(args: readonly string[]): Promise<void> {
  try {
    await runProgram(['openssl', ...args]);
  } catch (cause) {
    throw new Error(`The certificates are made with OpenSSL 3 or newer: ${errorMessage(cause)}`, { cause });
  }
}
