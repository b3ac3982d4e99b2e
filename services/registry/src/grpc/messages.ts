import { RegistryError } from '../common/errors.ts';
import { healthCheckOf, healthCheckTypes } from '../registrations/domain/health-check.ts';
import { isHealthy } from '../registrations/domain/instances.ts';
import {
  type Capability,
  capabilityNames,
  type Facts,
  type InstanceKey,
  type Registration,
  type ReportDetails,
} from '../registrations/domain/registration.ts';

/**
 * The messages of registry.proto, as they are read and written; fields that are absent have their
 * defaults.
 */
export interface Timestamp {
  readonly seconds: number;
  readonly nanos: number;
}

interface Duration {
  readonly seconds: number;
}

export interface ServiceMessage {
  readonly serviceName: string;
  readonly serviceUrl: string;
  readonly serviceId: string;
  readonly registeredAt: Timestamp;
  readonly lastHeartbeat: Timestamp;
  readonly capabilities: readonly string[];
}

/** What others may choose instances by; empty or 0 where it is not said. */
interface FactsMessage {
  readonly metadata: Readonly<Record<string, string>>;
  readonly zone: string;
  readonly weight: number;
  readonly graphqlPath: string;
  readonly check: HealthCheckMessage | null;
}

/** Empty or 0 where it is not said. */
interface HealthCheckMessage {
  readonly type: string | number;
  readonly path: string;
  readonly service: string;
  readonly intervalSeconds: number;
  readonly timeoutSeconds: number;
  readonly failureThreshold: number;
  readonly successThreshold: number;
}

interface HealthCheckResultMessage {
  readonly status: `STATUS_${'PASSING' | 'FAILING'}`;
  readonly since: Timestamp;
  readonly message: string;
}

/** Of one of several programs that are registered under a name. */
export interface InstanceMessage extends FactsMessage {
  readonly instanceId: string;
  readonly service: ServiceMessage;
  readonly healthy: boolean;
  readonly health: string;
  readonly version: string;
  readonly checkResult: HealthCheckResultMessage | null;
}

/** Which instance is meant; the one without an id where that is empty. */
export interface InstanceRequest {
  readonly serviceName: string;
  readonly instanceId: string;
}

export interface RegisterRequest extends InstanceRequest, FactsMessage {
  readonly serviceUrl: string;
  readonly capabilities: readonly (string | number)[];
}

export interface RegisterResponse extends Omit<ServiceMessage, 'lastHeartbeat'> {
  readonly instanceId: string;
  readonly ttl: Duration;
}

/** Of Get and ListInstances. */
export interface NameRequest {
  readonly serviceName: string;
}

export interface ListRequest {
  readonly capability: string | number;
  readonly prefix: string;
  readonly zone: string;
  readonly healthy: boolean;
  readonly metadata: Readonly<Record<string, string>>;
  readonly pageSize: number;
  readonly pageToken: string;
}

export interface ListResponse {
  readonly services: readonly ServiceMessage[];
  readonly nextPageToken: string;
}

/** Of ReportHealth and ReportLifecycle. */
export interface Report extends InstanceRequest {
  readonly timestamp: Timestamp | null;
  readonly details: Struct | null;
}

export interface ReportHealthRequest extends Report {
  readonly status: string;
}

export interface ReportLifecycleRequest extends Report {
  readonly event: string;
}

export interface WatchRequest {
  readonly cursor: string;
  readonly instances: boolean;
}

export interface WatchResponse {
  readonly type: `TYPE_${'ADDED' | 'MODIFIED' | 'EXPIRED' | 'REMOVED' | 'SYNCED' | 'RESET'}`;
  readonly service?: ServiceMessage;
  readonly instance?: InstanceMessage;
  readonly cursor?: string;
}

/** `google.protobuf.Struct` */
export interface Struct {
  readonly fields: Readonly<Record<string, Value>>;
}

/** `google.protobuf.Value`: one of these. */
interface Value {
  readonly nullValue?: unknown;
  readonly numberValue?: number;
  readonly stringValue?: string;
  readonly boolValue?: boolean;
  readonly structValue?: Struct;
  readonly listValue?: { readonly values: readonly Value[] };
}

const DETAILS_MAX_DEPTH = 32;

/** @throws RegistryError INVALID_REQUEST for a check that is not right. */
export function readFacts(message: FactsMessage): Omit<Facts, 'url' | 'capabilities'> {
  const { metadata, zone, weight, graphqlPath, check } = message;
  return {
    metadata: Object.keys(metadata).length === 0 ? undefined : metadata,
    zone: zone === '' ? undefined : zone,
    weight: weight === 0 ? undefined : weight,
    graphqlPath: graphqlPath === '' ? undefined : graphqlPath,
    check: check === null ? undefined : readCheck(check),
  };
}

function readCheck(message: HealthCheckMessage): Facts['check'] {
  const { type: name, path, service, ...numbers } = message;
  const type = healthCheckTypes.find((each) => `TYPE_${each.toUpperCase()}` === name);
  if (type === undefined) throw new RegistryError('INVALID_REQUEST', `${name} is no type of a check`);
  return healthCheckOf({
    type,
    path: path === '' ? undefined : path,
    service: service === '' ? undefined : service,
    intervalSeconds: numbers.intervalSeconds || undefined,
    timeoutSeconds: numbers.timeoutSeconds || undefined,
    failureThreshold: numbers.failureThreshold || undefined,
    successThreshold: numbers.successThreshold || undefined,
  });
}

export function readKey({ serviceName, instanceId }: InstanceRequest): InstanceKey {
  return { serviceName, instanceId: instanceId === '' ? undefined : instanceId };
}

/** @throws RegistryError INVALID_REQUEST for one that is unknown or unspecified. */
export function readCapability(name: string | number): Capability {
  const capability = capabilityNames.find((each) => enumName(each) === name);
  if (capability === undefined) throw new RegistryError('INVALID_REQUEST', `${name} is no capability`);
  return capability;
}

/** @throws RegistryError INVALID_REQUEST for unknown and repeated ones. */
export function readCapabilities(names: readonly (string | number)[]): Capability[] {
  const capabilities = names.map(readCapability);
  if (new Set(capabilities).size === capabilities.length) return capabilities;
  throw new RegistryError('INVALID_REQUEST', 'capabilities must not repeat');
}

/** @throws RegistryError INVALID_REQUEST for an instant that is none. */
export function readTimestamp({ seconds, nanos }: Timestamp): Date {
  const at = new Date(seconds * 1000 + nanos / 1e6);
  // As protocol buffers have it: from the year 1 to 9999.
  const isInstant = seconds >= -62_135_596_800 && seconds <= 253_402_300_799 && nanos >= 0 && nanos <= 999_999_999;
  if (!isInstant) {
    throw new RegistryError('INVALID_REQUEST', 'timestamp is no instant');
  }
  return at;
}

/** @throws RegistryError INVALID_REQUEST where it is nested too deeply. */
export function readDetails(struct: Struct | null): ReportDetails {
  return struct === null ? {} : readStruct(struct, 0);
}

function readStruct({ fields }: Struct, depth: number): Record<string, unknown> {
  return Object.fromEntries(Object.entries(fields).map(([key, value]) => [key, readValue(value, depth)]));
}

function readValue(value: Value, depth: number): unknown {
  if (depth > DETAILS_MAX_DEPTH) throw new RegistryError('INVALID_REQUEST', 'details are nested too deeply');
  const { structValue, listValue, stringValue, numberValue, boolValue } = value;
  if (structValue !== undefined) return readStruct(structValue, depth + 1);
  if (listValue !== undefined) return listValue.values.map((item) => readValue(item, depth + 1));
  return stringValue ?? numberValue ?? boolValue ?? null;
}

/** @param lastBeatAt of the registration, as far as it is known here. */
export function serviceMessage(
  registration: Registration,
  lastBeatAt: Date = registration.registeredAt,
): ServiceMessage {
  const { registeredAt } = registration;
  return {
    serviceName: registration.serviceName,
    serviceUrl: registration.url,
    serviceId: registration.serviceId,
    registeredAt: timestampMessage(registeredAt),
    lastHeartbeat: timestampMessage(lastBeatAt < registeredAt ? registeredAt : lastBeatAt),
    capabilities: registration.capabilities.map(enumName),
  };
}

/** As {@link serviceMessage}, of one instance. */
export function instanceMessage(registration: Registration, lastBeatAt?: Date): InstanceMessage {
  const { instanceId = '', health = '', currentVersion: version = '' } = registration;
  const { metadata = {}, zone = '', weight = 0, graphqlPath = '' } = registration;
  const service = serviceMessage(registration, lastBeatAt);
  const healthy = isHealthy(registration);
  const check = checkMessage(registration.check);
  const checkResult = checkResultMessage(registration.checkResult);
  return { instanceId, service, healthy, health, version, metadata, zone, weight, graphqlPath, check, checkResult };
}

function checkMessage(check: Registration['check']): HealthCheckMessage | null {
  if (check === undefined) return null;
  return { path: '', service: '', ...check, type: `TYPE_${check.type.toUpperCase()}` };
}

function checkResultMessage(result: Registration['checkResult']): HealthCheckResultMessage | null {
  if (result === undefined) return null;
  const { status, since, message } = result;
  return {
    status: status === 'Passing' ? 'STATUS_PASSING' : 'STATUS_FAILING',
    since: timestampMessage(since),
    message,
  };
}

function enumName(capability: Capability): string {
  return `CAPABILITY_${capability.toUpperCase()}`;
}

export function timestampMessage(at: Date): Timestamp {
  const ms = at.getTime();
  const seconds = Math.floor(ms / 1000);
  return { seconds, nanos: (ms - seconds * 1000) * 1_000_000 };
}
