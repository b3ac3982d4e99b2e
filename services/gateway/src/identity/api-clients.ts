import { apiClientKind, labels } from '@rollcall/crds/kinds.ts';
import type { ApiClient } from '@rollcall/crds/types.gen.ts';
import type { Clock } from '@rollcall/platform/clock.ts';
import { errorMessage } from '@rollcall/platform/errors.ts';
import { type Secret, secretKind } from '@rollcall/platform/kube/builtin-kinds.ts';
import { setCondition } from '@rollcall/platform/kube/conditions.ts';
import type { KubeConnection } from '@rollcall/platform/kube/connection.ts';
import { isConflict, isNotFound } from '@rollcall/platform/kube/errors.ts';
import { createInformer } from '@rollcall/platform/kube/informer.ts';
import { resourceClient } from '@rollcall/platform/kube/resource-client.ts';
import type { Actor } from '@rollcall/platform/process/lifecycle.ts';
import type { Logger } from '@rollcall/platform/process/log.ts';
import type { Tier } from '../admission/caller.ts';
import { type KeptSecret, keepSecret, SCRYPT_FORMAT, SECRET_MIN_LENGTH } from './client-secret.ts';

/** A program that may ask for tokens. */
export interface KnownClient {
  readonly clientId: string;
  readonly tier: Tier;
  readonly scopes: readonly string[];
  readonly secret: KeptSecret;
  /**
   * Another one when the object was made anew or its secret changed: what was issued before is
   * void.
   */
  readonly generation: string;
}

export interface ApiClientsDeps {
  readonly connection: KubeConnection;
  readonly namespace: string;
  /** Asked once the actor starts. */
  readonly fingerprintKey: () => Buffer;
  readonly clock: Clock;
  readonly log: Logger;
}

/** The ApiClients of a namespace with their secrets, as last received from the API server. */
export interface ApiClients {
  readonly actor: Actor;
  find(clientId: string): KnownClient | undefined;
  connected(): boolean;
}

interface Verdict {
  readonly status: 'True' | 'False';
  readonly reason: 'Ready' | 'SecretMissing' | 'SecretKeyMissing' | 'SecretInvalid' | 'ClientIdTaken';
  readonly message: string;
}

/** Secrets as they are kept: no value, only what is made of it. */
interface KeptSecrets extends Secret {
  readonly kept?: ReadonlyMap<string, KeptSecret | undefined>;
}

/**
 * Follows ApiClients, and of the Secrets those alone that are labelled `rollcall.dev/api-client`:
 * what other Secrets of the namespace hold never gets here. Their values are replaced by hashes
 * before they are stored.
 */
export function createApiClients(deps: ApiClientsDeps): ApiClients {
  const { connection, namespace, clock, log } = deps;
  const common = { connection, namespace, clock, log };
  const objects = createInformer<ApiClient>({ ...common, kind: apiClientKind });
  const secrets = createInformer<KeptSecrets>({
    ...common,
    kind: secretKind,
    labelSelector: `${labels.apiClientSecret}=true`,
    transform: ({ data = {}, ...secret }) => ({
      ...secret,
      kept: new Map(
        Object.entries(data).map(([key, value]) => [
          key,
          keepSecret(Buffer.from(value, 'base64'), deps.fingerprintKey()),
        ]),
      ),
    }),
  });
  const informers = [objects, secrets];
  const client = resourceClient(connection, apiClientKind, namespace);
  let clients: ReadonlyMap<string, KnownClient> = new Map();
  let rebuildDue = false;

  function rebuild(): void {
    rebuildDue = false;
    if (!informers.every((informer) => informer.hasSynced())) return;
    const next = new Map<string, KnownClient>();
    const byAge = [...objects.store.values()].sort(olderFirst);
    for (const object of byAge) {
      const judged = judge(object, {
        secret: secrets.store.get(`${namespace}/${object.spec.secretRef.name}`),
        isInUse: next.has(object.spec.clientId),
      });
      if ('client' in judged) next.set(judged.client.clientId, judged.client);
      void report(object, 'client' in judged ? READY : judged.verdict);
    }
    clients = next;
  }

  /** Several changes at once, a first list above all, are handled once. */
  function changed(): void {
    if (rebuildDue) return;
    rebuildDue = true;
    queueMicrotask(rebuild);
  }

  async function report({ metadata, status }: ApiClient, { reason, message, status: state }: Verdict): Promise<void> {
    const { name, resourceVersion, generation = 0 } = metadata;
    const written = status?.conditions?.find(({ type }) => type === 'Ready');
    const isWritten = written?.status === state && written.reason === reason && written.message === message;
    if (resourceVersion === undefined || (isWritten && status?.observedGeneration === generation)) return;
    const condition = { type: 'Ready', status: state, reason, message, observedGeneration: generation };
    const conditions = setCondition(status?.conditions ?? [], condition, clock.now().toISOString());
    try {
      const body = { status: { observedGeneration: generation, conditions } };
      objects.recordWrite(await client.patch(name, body, { resourceVersion, subresource: 'status' }));
    } catch (err) {
      // Another replica has written it, or the client is gone; else the next change tries again.
      if (!isConflict(err) && !isNotFound(err))
        log.warn({ name, message: errorMessage(err) }, 'status of the client not written');
    }
  }

  for (const informer of informers) {
    informer.onChange(changed);
    informer.onStream(changed);
  }

  return {
    actor: {
      name: 'API clients',
      async start() {
        for (const informer of informers) informer.start();
        await Promise.all(informers.map((informer) => informer.synced));
        rebuild();
      },
      stop: async () => void (await Promise.all(informers.map((informer) => informer.stop()))),
    },
    find: (clientId) => clients.get(clientId),
    connected: () => informers.every((informer) => informer.connectivity() === 'connected'),
  };
}

const READY: Verdict = { status: 'True', reason: 'Ready', message: 'The client may ask for tokens' };
const TIERS = { Premium: 'premium', Standard: 'standard', Free: 'free' } as const;

/** Pure. @returns the client, or why it may not ask for tokens. */
export function judge(
  { spec, metadata }: ApiClient,
  { secret, isInUse }: { readonly secret: KeptSecrets | undefined; readonly isInUse: boolean },
): { readonly client: KnownClient } | { readonly verdict: Verdict } {
  const { clientId, tier, scopes, secretRef } = spec;
  const refuse = (reason: Verdict['reason'], message: string) => ({
    verdict: { status: 'False' as const, reason, message },
  });
  if (isInUse) return refuse('ClientIdTaken', `Another, older ApiClient has the clientId ${clientId}`);
  if (secret === undefined) {
    const message = `There is no Secret ${secretRef.name} with the label ${labels.apiClientSecret}: "true"`;
    return refuse('SecretMissing', message);
  }
  const key = secretRef.key;
  if (secret.kept?.has(key) !== true) {
    return refuse('SecretKeyMissing', `Secret ${secretRef.name} has no key ${key}`);
  }
  const kept = secret.kept.get(key);
  if (kept === undefined) {
    const wanted = `a secret of at least ${SECRET_MIN_LENGTH} characters or its hash as \`rollcall clients create\` makes it, ${SCRYPT_FORMAT}`;
    return refuse('SecretInvalid', `Key ${key} of Secret ${secretRef.name} is not ${wanted}`);
  }
  const generation = `${metadata.uid ?? ''}.${kept.fingerprint}`;
  return { client: { clientId, tier: TIERS[tier], scopes, secret: kept, generation } };
}

function olderFirst({ metadata: a }: ApiClient, { metadata: b }: ApiClient): number {
  const [atA, atB] = [a.creationTimestamp ?? '', b.creationTimestamp ?? ''];
  if (atA !== atB) return atA < atB ? -1 : 1;
  return (a.uid ?? '') < (b.uid ?? '') ? -1 : 1;
}
