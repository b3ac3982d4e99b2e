import { httpUrlFault } from '@rollcall/platform/service-address.ts';
import { INVISIBLE, isLongerThan } from '@rollcall/platform/text-rules.ts';
import { RegistryError } from '../../common/errors.ts';
import { checkServiceName } from '../../common/validation.ts';
import {
  type Admission,
  type AdmissionDeps,
  admit,
  admitUnsigned,
  freeAdmission,
  type WebhookCall,
} from './call-admission.ts';
import type { WebhookConfigStore, WebhookReplacement, WebhookSettings } from './webhook-settings.ts';

/** Stands for all services. */
export const ALL_SERVICES = '*';

export const CHANNELS_MAX = 64;
const CHANNEL_MAX_LENGTH = 64;
const FORBIDDEN_IN_CHANNEL = new RegExp(String.raw`[${INVISIBLE}]|[\ud800-\udfff]`, 'u');

/** {@link channelFault} as JSON Schema has it. */
export const channelRules = { minLength: 1, maxLength: CHANNEL_MAX_LENGTH, pattern: `^[^${INVISIBLE}]+$` };

export interface WebhookConfigsDeps {
  readonly configs: WebhookConfigStore;
}

/**
 * Lets a call through that proves to know the secret of the service, or the global one where it has
 * none. Where there is neither, the caller has to be known, unless the rules
 * allow any.
 *
 * @throws RegistryError INVALID_SIGNATURE, also for a secret where none is set; SECRET_MISSING, SIGNATURE_REQUIRED, INVALID_SERVICE_NAME.
 */
export async function authorizeCall(deps: AdmissionDeps, serviceName: string, proof: WebhookCall): Promise<Admission> {
  checkScope(serviceName);
  const settings = await settingsWithSecret(deps, serviceName);
  if (settings !== undefined) return admit(deps, settings, proof);
  refuseNeedless(proof.secrets);
  return admitUnsigned(deps, proof);
}

/** Who shows a secret takes the call for protected. @throws RegistryError INVALID_SIGNATURE. */
function refuseNeedless(secrets: WebhookCall['secrets']): void {
  if (secrets.every((secret = '') => secret === '')) return;
  throw new RegistryError(
    'INVALID_SIGNATURE',
    'webhook_secret proves a secret that is stored, and none is; store one by POST /webhooks/config, in its field secret',
  );
}

/**
 * Sets where notifications go, and the secret (contract 1, `/webhooks/config`). The call is
 * authorised against the very configuration that it replaces: one that was free to come while there
 * was no secret is not, once another call has set one.
 *
 * @throws RegistryError INVALID_SERVICE_NAME, INVALID_REQUEST, and as {@link authorizeCall}. No URL
 * is repeated: it may hold a password.
 */
export async function configureWebhooks(
  deps: AdmissionDeps,
  input: WebhookReplacement,
  proof: WebhookCall,
): Promise<void> {
  checkScope(input.serviceName);
  const channels = Object.entries(input.endpoints);
  if (channels.length > CHANNELS_MAX) {
    throw new RegistryError('INVALID_REQUEST', `endpoints must have at most ${CHANNELS_MAX} channels`);
  }
  for (const [channel, url] of channels) {
    const fault = channelFault(channel) ?? endpointFault(url);
    if (fault !== undefined) throw new RegistryError('INVALID_REQUEST', fault);
  }
  let admission = freeAdmission(deps.clock);
  await deps.configs.replace(input, async (present) => {
    const settings = present?.secretRef === undefined ? await globalWithSecret(deps, input.serviceName) : present;
    if (settings === undefined) {
      // The proof that is to be stored is not dropped: so may one call set a secret, made once or
      // again.
      refuseNeedless(proof.secrets.filter((secret) => secret !== input.secret));
      admission = admitUnsigned(deps, proof);
    } else {
      admission = await admit(deps, settings, proof);
    }
  });
  await admission.done();
}

/** A configuration, and what it comes to. */
export interface DescribedConfig {
  /** Undefined: there is no global one. */
  readonly settings: WebhookSettings | undefined;
  /** Whether calls must be signed, with the service's secret or the global one. */
  readonly isSigned: boolean;
}

/**
 * The configuration of a service, or the global one.
 *
 * @throws RegistryError CONFIG_NOT_FOUND for a service without, INVALID_SERVICE_NAME.
 */
export async function describeConfig({ configs }: WebhookConfigsDeps, serviceName: string): Promise<DescribedConfig> {
  checkScope(serviceName);
  const settings = await configs.find(serviceName);
  const isSigned = (await settingsWithSecret({ configs }, serviceName)) !== undefined;
  if (settings === undefined && serviceName !== ALL_SERVICES) {
    const signing = isSigned ? '; calls must be signed with the secret for all services' : '';
    const message = `No webhook configuration is stored for service '${serviceName}'${signing}`;
    throw new RegistryError('CONFIG_NOT_FOUND', message);
  }
  return { settings, isSigned };
}

/** Where a notification goes, and the configuration that says so. */
export interface Endpoint {
  readonly url: string;
  readonly settings: WebhookSettings;
}

/** Looks the channel up in the configuration of the service, then in the global one. */
export async function findEndpoint(
  { configs }: WebhookConfigsDeps,
  serviceName: string,
  channel: string,
): Promise<Endpoint | undefined> {
  for (const scope of [serviceName, ALL_SERVICES]) {
    const settings = await configs.find(scope);
    const url = settings?.endpoints.get(channel);
    if (settings !== undefined && url !== undefined) return { url, settings };
  }
  return undefined;
}

/**
 * The configuration of the service where that names a secret, else the global one where that does.
 */
export async function settingsWithSecret(
  deps: WebhookConfigsDeps,
  serviceName: string,
): Promise<WebhookSettings | undefined> {
  const own = await deps.configs.find(serviceName);
  return own?.secretRef === undefined ? globalWithSecret(deps, serviceName) : own;
}

/** The global configuration where that names a secret, for a service whose own does not. */
async function globalWithSecret(
  { configs }: WebhookConfigsDeps,
  serviceName: string,
): Promise<WebhookSettings | undefined> {
  const settings = serviceName === ALL_SERVICES ? undefined : await configs.find(ALL_SERVICES);
  return settings?.secretRef === undefined ? undefined : settings;
}

function checkScope(serviceName: string): void {
  if (serviceName !== ALL_SERVICES) checkServiceName(serviceName);
}

/** What is wrong with the name of a channel; undefined: nothing. */
export function channelFault(channel: string): string | undefined {
  if (channel === '') return 'channel must not be empty';
  if (isLongerThan(channel, CHANNEL_MAX_LENGTH)) return `channel must have at most ${CHANNEL_MAX_LENGTH} characters`;
  if (FORBIDDEN_IN_CHANNEL.test(channel))
    return 'channel must not contain white space, invisible or control characters';
  return undefined;
}

function endpointFault(url: string): string | undefined {
  const fault = httpUrlFault(url);
  return fault === undefined ? undefined : `each endpoint ${fault}`;
}
