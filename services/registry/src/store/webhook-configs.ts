import { hash, randomBytes } from 'node:crypto';
import { labels, objectNameFor, webhookConfigKind } from '@rollcall/crds/kinds.ts';
import type { WebhookConfig } from '@rollcall/crds/types.gen.ts';
import type { Clock } from '@rollcall/platform/clock.ts';
import { type Secret, secretKind } from '@rollcall/platform/kube/builtin-kinds.ts';
import type { KubeConnection } from '@rollcall/platform/kube/connection.ts';
import { isAlreadyExists, isConflict, isInvalid, isNotFound } from '@rollcall/platform/kube/errors.ts';
import { collectionPath, type ResourceClient, resourceClient } from '@rollcall/platform/kube/resource-client.ts';
import type { WebhookConfigStore, WebhookReplacement, WebhookSettings } from '../domain/delivery-ports.ts';
import { RegistryError } from '../domain/errors.ts';
import { fieldIs } from './field-selector.ts';
import { refusal } from './refusal.ts';

const SECRET_KEY = 'secret';
const TRIES = 4;

interface Context {
  readonly connection: KubeConnection;
  readonly namespace: string;
  readonly clock: Clock;
  readonly configs: ResourceClient<WebhookConfig>;
  readonly secrets: ResourceClient<Secret>;
}

/** Webhook configurations as custom resources, their secrets as Secrets. Every read asks the API server. */
export function createWebhookConfigs(deps: Pick<Context, 'connection' | 'namespace' | 'clock'>): WebhookConfigStore {
  const context: Context = {
    ...deps,
    configs: resourceClient(deps.connection, webhookConfigKind, deps.namespace),
    secrets: resourceClient(deps.connection, secretKind, deps.namespace),
  };
  return {
    async find(serviceName) {
      const config = await findConfig(context, serviceName);
      return config === undefined ? undefined : toSettings(config);
    },
    async replace(replacement, permit) {
      const { serviceName } = replacement;
      for (let tries = 1; tries <= TRIES; tries += 1) {
        const present = await findConfig(context, serviceName);
        await permit(present === undefined ? undefined : toSettings(present));
        if (await replaceOnce(context, present, replacement)) return;
      }
      throw new RegistryError('STORE_UNAVAILABLE', `The configuration of '${serviceName}' keeps changing; try again`);
    },
    async readSecret({ secretRef }) {
      if (secretRef === undefined) return undefined;
      const value = (await context.secrets.find(secretRef.name))?.data?.[secretRef.key];
      const secret = value === undefined ? '' : Buffer.from(value, 'base64').toString('utf8');
      return secret === '' ? undefined : secret;
    },
  };
}

/**
 * Replaces a configuration in one write, which takes effect only if nobody else wrote since it was read. A new secret is
 * stored before under a name of its own, and what it takes the place of is deleted after: at no moment does a
 * configuration name a Secret that is not there, and a crash leaves either the old state or the new one, with at most a
 * Secret that nothing names, which the next change deletes.
 *
 * @returns false when somebody else wrote first.
 */
async function replaceOnce(
  context: Context,
  config: WebhookConfig | undefined,
  { serviceName, endpoints, secret }: WebhookReplacement,
): Promise<boolean> {
  if (secret === undefined) {
    const written = await writeConfig(context, config, { serviceName, endpoints, secretName: undefined });
    if (written !== undefined) await recordTime(context, written);
    return written !== undefined;
  }
  // Listed before the write: a Secret that another call made by then is one whose write must fail if ours succeeds.
  const obsolete = await listSecrets(context, serviceName);
  const secretName = await createSecret(context, { serviceName, secret, config });
  const written = await writeConfig(context, config, { serviceName, endpoints, secretName });
  if (written === undefined) {
    await context.secrets.delete(secretName);
    return false;
  }
  if (config === undefined) {
    await context.secrets.patch(secretName, { metadata: { ownerReferences: ownersOf(written) } });
  }
  await recordTime(context, written);
  for (const { metadata } of obsolete) await context.secrets.delete(metadata.name);
  return true;
}

/** Under its canonical name, else the oldest that names the service: people may call theirs as they like. */
async function findConfig({ connection, namespace }: Context, serviceName: string): Promise<WebhookConfig | undefined> {
  const { items } = await connection.request<{ items: readonly WebhookConfig[] }>({
    method: 'GET',
    path: collectionPath(webhookConfigKind, namespace),
    query: { fieldSelector: fieldIs('spec.serviceName', serviceName) },
  });
  const canonical = objectNameFor(serviceName);
  return (
    items.find(({ metadata }) => metadata.name === canonical) ??
    items.toSorted((a, b) => (ageOf(a) < ageOf(b) ? -1 : 1)).at(0)
  );
}

function ageOf({ metadata }: WebhookConfig): string {
  return `${metadata.creationTimestamp} ${metadata.name}`;
}

interface ConfigWrite {
  readonly serviceName: string;
  readonly endpoints: Readonly<Record<string, string>>;
  /** Undefined: the reference stays as it is. */
  readonly secretName: string | undefined;
}

/** @returns undefined when the configuration is no longer as it was read. */
async function writeConfig(
  { configs }: Context,
  config: WebhookConfig | undefined,
  { serviceName, endpoints, secretName }: ConfigWrite,
): Promise<WebhookConfig | undefined> {
  const secretRef = secretName === undefined ? undefined : { name: secretName, key: SECRET_KEY };
  try {
    if (config === undefined) {
      return await configs.create({
        apiVersion: 'rollcall.dev/v1alpha1',
        kind: 'WebhookConfig',
        metadata: { name: objectNameFor(serviceName) },
        spec: { serviceName, endpoints: { ...endpoints }, ...(secretRef === undefined ? {} : { secretRef }) },
      });
    }
    // A JSON patch rather than server-side apply: it also drops the channels that other managers added.
    return await configs.jsonPatch(config.metadata.name, [
      { op: 'replace', path: '/metadata/uid', value: config.metadata.uid },
      { op: 'replace', path: '/metadata/resourceVersion', value: config.metadata.resourceVersion },
      { op: 'add', path: '/spec/endpoints', value: endpoints },
      ...(secretRef === undefined ? [] : [{ op: 'add', path: '/spec/secretRef', value: secretRef }]),
    ]);
  } catch (error) {
    if (isAlreadyExists(error) || isConflict(error) || isNotFound(error)) return undefined;
    if (isInvalid(error)) throw refusal(error, 'the configuration');
    throw error;
  }
}

async function recordTime({ configs, clock }: Context, { metadata }: WebhookConfig): Promise<void> {
  const status = { configuredAt: clock.now().toISOString(), observedGeneration: metadata.generation };
  const precondition = metadata.uid === undefined ? {} : { uid: metadata.uid };
  await configs.patch(metadata.name, { status }, { ...precondition, subresource: 'status' });
}

async function listSecrets({ connection, namespace }: Context, serviceName: string): Promise<readonly Secret[]> {
  const { items } = await connection.request<{ items: readonly Secret[] }>({
    method: 'GET',
    path: collectionPath(secretKind, namespace),
    query: { labelSelector: `${labels.webhookSecret}=${labelOf(serviceName)}` },
  });
  return items;
}

async function createSecret(
  { secrets }: Context,
  { serviceName, secret, config }: { serviceName: string; secret: string; config: WebhookConfig | undefined },
): Promise<string> {
  const { metadata } = await secrets.create({
    apiVersion: 'v1',
    kind: 'Secret',
    type: 'Opaque',
    metadata: {
      name: `${objectNameFor(serviceName)}.webhook.${randomBytes(8).toString('hex')}`,
      labels: { [labels.webhookSecret]: labelOf(serviceName) },
      ...(config === undefined ? {} : { ownerReferences: ownersOf(config) }),
    },
    data: { [SECRET_KEY]: Buffer.from(secret, 'utf8').toString('base64') },
  });
  return metadata.name;
}

/** A service name is not always a legal label value. */
function labelOf(serviceName: string): string {
  return hash('sha256', serviceName, 'hex').slice(0, 32);
}

function ownersOf({ metadata }: WebhookConfig) {
  return [
    {
      apiVersion: webhookConfigKind.apiVersion,
      kind: webhookConfigKind.kind,
      name: metadata.name,
      uid: metadata.uid ?? '',
    },
  ];
}

/** A configuration applied by hand was configured when it was created. */
function toSettings({ metadata, spec, status }: WebhookConfig): WebhookSettings {
  return {
    serviceName: spec.serviceName,
    endpoints: new Map(Object.entries(spec.endpoints)),
    configuredAt: new Date(status?.configuredAt ?? metadata.creationTimestamp ?? 0),
    secretRef: spec.secretRef,
  };
}
