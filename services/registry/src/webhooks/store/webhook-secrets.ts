import { randomBytes } from 'node:crypto';
import { objectNameFor } from '@rollcall/crds/kinds.ts';
import type { Clock } from '@rollcall/platform/clock.ts';
import { type Secret, secretKind } from '@rollcall/platform/kube/builtin-kinds.ts';
import type { KubeConnection } from '@rollcall/platform/kube/connection.ts';
import { isAlreadyExists, isForbidden, isInvalid, isNotFound } from '@rollcall/platform/kube/errors.ts';
import { resourceClient } from '@rollcall/platform/kube/resource-client.ts';
import type { Logger } from '@rollcall/platform/process/log.ts';
import { RegistryError } from '../../common/errors.ts';
import { refusal } from '../../kube/refusal.ts';

export interface SecretRef {
  readonly name: string;
  readonly key: string;
}

/**
 * The secrets of webhook configurations. Secrets that the registry keeps are in one Secret, each
 * under a key of its own.
 */
export interface WebhookSecrets {
  /** Keeps a secret of a service. @returns where. */
  add(serviceName: string, secret: string): Promise<SecretRef>;
  /** What is kept. */
  list(): Promise<readonly KeptSecret[]>;
  /** Keys that are gone already do not matter. */
  remove(keys: readonly string[]): Promise<void>;
  /** @returns undefined when there is none, or it is in a Secret that the registry may not read. */
  read(ref: SecretRef): Promise<string | undefined>;
}

export interface KeptSecret {
  readonly ref: SecretRef;
  /** Of the service; see `objectNameFor`. */
  readonly objectName: string;
  readonly keptAt: Date;
}

export interface WebhookSecretsDeps {
  readonly connection: KubeConnection;
  readonly namespace: string;
  /** Of the Secret. */
  readonly secretName: string;
  readonly clock: Clock;
  readonly log: Logger;
}

/**
 * `<object name>.<seconds since 1970, hexadecimal><random>`; no object name ends so that it would
 * look like another's key.
 */
const KEY = /^(?<objectName>.+)\.(?<seconds>[0-9a-f]{8})[0-9a-f]{8}$/;

export function createWebhookSecrets(deps: WebhookSecretsDeps): WebhookSecrets {
  const { connection, namespace, secretName, clock, log } = deps;
  const secrets = resourceClient<Secret>(connection, secretKind, namespace);

  async function put(data: Readonly<Record<string, string>>): Promise<void> {
    try {
      await secrets.patch(secretName, { data });
    } catch (error) {
      if (!isNotFound(error)) throw error;
      await create(data);
    }
  }

  async function create(data: Readonly<Record<string, string>>): Promise<void> {
    try {
      await secrets.create({ apiVersion: 'v1', kind: 'Secret', type: 'Opaque', metadata: { name: secretName }, data });
    } catch (error) {
      if (isAlreadyExists(error)) await secrets.patch(secretName, { data });
      else if (!isForbidden(error)) throw error;
      // Where it is part of the installation, nobody else is to make Secrets.
      else
        throw new RegistryError(
          'SECRET_MISSING',
          `The Secret '${secretName}', in which secrets are kept, is missing; make it, empty`,
          { cause: error },
        );
    }
  }

  return {
    async add(serviceName, secret) {
      const key = keyOf(serviceName, clock.now());
      try {
        await put({ [key]: Buffer.from(secret, 'utf8').toString('base64') });
      } catch (error) {
        if (isInvalid(error)) throw refusal(error, 'the secret');
        throw error;
      }
      return { name: secretName, key };
    },
    async list() {
      const data = (await secrets.find(secretName))?.data ?? {};
      return Object.keys(data).flatMap((key) => keptAs(key, secretName));
    },
    async remove(keys) {
      if (keys.length === 0) return;
      try {
        await secrets.patch(secretName, { data: Object.fromEntries(keys.map((key) => [key, null])) });
      } catch (error) {
        if (!isNotFound(error)) throw error;
      }
    },
    async read({ name, key }) {
      try {
        const value = (await secrets.find(name))?.data?.[key];
        const secret = value === undefined ? '' : Buffer.from(value, 'base64').toString('utf8');
        return secret === '' ? undefined : secret;
      } catch (error) {
        if (!isForbidden(error)) throw error;
        log.warn({ secret: name }, 'a webhook configuration names a Secret that the registry may not read');
        return undefined;
      }
    },
  };
}

function keyOf(serviceName: string, now: Date): string {
  const seconds = Math.floor(now.getTime() / 1000).toString(16);
  return `${objectNameFor(serviceName)}.${seconds.padStart(8, '0')}${randomBytes(4).toString('hex')}`;
}

/** Nothing for a key that somebody else has put there. */
function keptAs(key: string, name: string): KeptSecret[] {
  const { objectName, seconds } = KEY.exec(key)?.groups ?? {};
  if (objectName === undefined || seconds === undefined) return [];
  return [{ ref: { name, key }, objectName, keptAt: new Date(Number.parseInt(seconds, 16) * 1000) }];
}
