import { objectNameFor, webhookConfigKind } from '@rollcall/crds/kinds.ts';
import type { WebhookConfig } from '@rollcall/crds/types.gen.ts';
import { isAlreadyExists, isConflict, isInvalid, isNotFound } from '@rollcall/platform/kube/errors.ts';
import { fieldSelector, listObjects } from '@rollcall/platform/kube/list.ts';
import { type ResourceClient, resourceClient } from '@rollcall/platform/kube/resource-client.ts';
import { RegistryError } from '../../common/errors.ts';
import { refusal } from '../../kube/refusal.ts';
import type { WebhookConfigStore, WebhookReplacement, WebhookSettings } from '../domain/webhook-settings.ts';
import {
  createWebhookSecrets,
  type KeptSecret,
  type SecretRef,
  type WebhookSecrets,
  type WebhookSecretsDeps,
} from './webhook-secrets.ts';

const TRIES = 4;
/**
 * Longer than any call lasts: a secret that no configuration names may be that of a call which has
 * not yet written its own.
 */
const UNNAMED_MS = 3_600_000;

export interface WebhookConfigsStoreDeps extends WebhookSecretsDeps {
  /** Called with every configuration that was written. */
  readonly onWrite: (config: WebhookConfig) => void;
}

interface Context extends Pick<WebhookConfigsStoreDeps, 'connection' | 'namespace' | 'clock' | 'onWrite'> {
  readonly configs: ResourceClient<WebhookConfig>;
  readonly secrets: WebhookSecrets;
}

/**
 * Webhook configurations as custom resources, their secrets in a Secret. Every read asks the API
 * server.
 */
export function createWebhookConfigs(deps: WebhookConfigsStoreDeps): WebhookConfigStore {
  const { connection, namespace, clock, onWrite } = deps;
  const context: Context = {
    connection,
    namespace,
    clock,
    onWrite,
    configs: resourceClient(connection, webhookConfigKind, namespace),
    secrets: createWebhookSecrets(deps),
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
      throw new RegistryError('CONTENTION', `The configuration of '${serviceName}' keeps changing; try again`);
    },
    readSecret: async ({ secretRef }) => (secretRef === undefined ? undefined : context.secrets.read(secretRef)),
  };
}

/**
 * Replaces a configuration in one write, which takes effect only if nobody else wrote since it was
 * read. A new secret is stored before under a key of its own, and the old one is deleted after: at
 * no moment does a configuration name a secret that is not there, and a crash leaves either the old
 * state or the new one, with at most a secret that nothing names, which the next change deletes. So
 * it does with those of configurations that are gone.
 *
 * @returns false when somebody else wrote first.
 */
async function replaceOnce(
  context: Context,
  config: WebhookConfig | undefined,
  { serviceName, endpoints, secret }: WebhookReplacement,
): Promise<boolean> {
  if (secret === undefined) {
    const written = await writeConfig(context, config, { serviceName, endpoints, secretRef: undefined });
    if (written !== undefined) await recordTime(context, written);
    return written !== undefined;
  }
  // Listed before the write: a secret that another call stored by then is one whose write must fail
  // if ours succeeds.
  const kept = await context.secrets.list();
  const secretRef = await context.secrets.add(serviceName, secret);
  const written = await writeConfig(context, config, { serviceName, endpoints, secretRef });
  if (written === undefined) {
    await context.secrets.remove([secretRef.key]);
    return false;
  }
  await recordTime(context, written);
  await context.secrets.remove(await obsoleteOf(context, kept, serviceName));
  return true;
}

/**
 * The keys to delete when a service gets another secret: its own old one, and those that no
 * configuration has named for long.
 */
async function obsoleteOf(
  context: Context,
  kept: readonly KeptSecret[],
  serviceName: string,
): Promise<readonly string[]> {
  const objectName = objectNameFor(serviceName);
  const items = await listObjects(context.connection, webhookConfigKind, { namespace: context.namespace });
  const named = new Set(items.map(({ spec }) => `${spec.secretRef?.name}/${spec.secretRef?.key}`));
  const long = context.clock.now().getTime() - UNNAMED_MS;
  const obsolete = kept.filter(
    (each) =>
      each.objectName === objectName ||
      (each.keptAt.getTime() < long && !named.has(`${each.ref.name}/${each.ref.key}`)),
  );
  return obsolete.map(({ ref }) => ref.key);
}

async function findConfig(context: Context, serviceName: string): Promise<WebhookConfig | undefined> {
  const { connection, namespace } = context;
  const query = { fieldSelector: fieldSelector('spec.serviceName', serviceName) };
  return chooseConfig(await listObjects(connection, webhookConfigKind, { namespace, query }), serviceName);
}

/**
 * Of several that name the service the one under its canonical name, else the oldest: people may
 * call theirs as they like.
 */
export function chooseConfig(configs: readonly WebhookConfig[], serviceName: string): WebhookConfig | undefined {
  const canonical = objectNameFor(serviceName);
  const candidates = configs.filter(({ spec }) => spec.serviceName === serviceName);
  return (
    candidates.find(({ metadata }) => metadata.name === canonical) ??
    candidates.toSorted((a, b) => (ageOf(a) < ageOf(b) ? -1 : 1)).at(0)
  );
}

function ageOf({ metadata }: WebhookConfig): string {
  return `${metadata.creationTimestamp} ${metadata.name}`;
}

interface ConfigWrite {
  readonly serviceName: string;
  readonly endpoints: Readonly<Record<string, string>>;
  /** Undefined: the reference stays as it is. */
  readonly secretRef: SecretRef | undefined;
}

/** @returns undefined when the configuration is no longer as it was read. */
async function writeConfig(
  { configs }: Context,
  config: WebhookConfig | undefined,
  { serviceName, endpoints, secretRef }: ConfigWrite,
): Promise<WebhookConfig | undefined> {
  try {
    if (config === undefined) {
      return await configs.create({
        apiVersion: 'rollcall.dev/v1alpha1',
        kind: 'WebhookConfig',
        metadata: { name: objectNameFor(serviceName) },
        spec: { serviceName, endpoints: { ...endpoints }, ...(secretRef === undefined ? {} : { secretRef }) },
      });
    }
    // A JSON patch rather than server-side apply: it also drops the channels that other managers
    // added.
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

async function recordTime({ configs, clock, onWrite }: Context, { metadata }: WebhookConfig): Promise<void> {
  const status = { configuredAt: clock.now().toISOString(), observedGeneration: metadata.generation };
  const precondition = metadata.uid === undefined ? {} : { uid: metadata.uid };
  onWrite(await configs.patch(metadata.name, { status }, { ...precondition, subresource: 'status' }));
}

/** A configuration applied by hand was configured when it was created. */
export function toSettings({ metadata, spec, status }: WebhookConfig): WebhookSettings {
  return {
    serviceName: spec.serviceName,
    endpoints: new Map(Object.entries(spec.endpoints)),
    configuredAt: new Date(status?.configuredAt ?? metadata.creationTimestamp ?? 0),
    secretRef: spec.secretRef,
  };
}
