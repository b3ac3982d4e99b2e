import type { HealthCheck, HealthCheckResult } from './health-check.ts';

/** The protocols a service may say that it speaks (contract 1, "Service registration"). */
export const capabilityNames = ['rest', 'graphql', 'grpc', 'mcp'] as const;
export type Capability = (typeof capabilityNames)[number];

/**
 * Who made a registration: a program over HTTP, a manifest applied by hand, the operator from a
 * Kubernetes Service.
 */
type RegistrationSource = 'API' | 'Manifest' | 'KubernetesService';

/** Which registration is meant. */
export interface InstanceKey {
  readonly serviceName: string;
  /** Undefined: the one instance that has no id, as the contract knows it. */
  readonly instanceId?: string | undefined;
}

/** What a program says of itself when it registers. */
export interface Facts {
  readonly url: string;
  readonly capabilities: readonly Capability[];
  /** Whatever else others may choose instances by. */
  readonly metadata?: Readonly<Record<string, string>> | undefined;
  /** Where it runs. */
  readonly zone?: string | undefined;
  /** How many requests it is to get, compared with others: from 1 to 1000, 100 by default. */
  readonly weight?: number | undefined;
  /** Of its GraphQL API, below the URL. */
  readonly graphqlPath?: string | undefined;
  readonly check?: HealthCheck | undefined;
}

/** A registration as the store has it: of one instance of a service. */
export interface Registration extends InstanceKey, Facts {
  /** Identifier of this life of the registration; a new one after expiry or removal. */
  readonly id: string;
  /** Of the service, as this instance knows it: the same as {@link id} where it was its first. */
  readonly serviceId: string;
  readonly source: RegistrationSource;
  /** Undefined: it never expires for want of heartbeats. */
  readonly ttlSeconds: number | undefined;
  /** By the API server's clock, in whole seconds. */
  readonly createdAt: Date;
  readonly registeredAt: Date;
  readonly phase: 'Registered' | 'Expired';
  /** The version that runs, as the service or a delivery job reported it. */
  readonly currentVersion: string | undefined;
  /** What the instance last said of its health; undefined: nothing yet. */
  readonly health: string | undefined;
  /** Undefined: none is declared, or it has come to nothing yet. */
  readonly checkResult?: HealthCheckResult | undefined;
  /** The subject that registered the name, where authentication was on. */
  readonly owner: string | undefined;
  /** Orders the states of all registrations; grows with every change. */
  readonly version: number;
}

/** What a program asks for when it registers. */
export interface RegistrationRequest extends InstanceKey, Facts {
  readonly owner: string | undefined;
}

/** A registration that is about to be made. */
export interface NewRegistration extends RegistrationRequest {
  /** Of the instances that are there already; undefined: it is the first. */
  readonly serviceId: string | undefined;
  readonly ttlSeconds: number;
}

/** One life of a registration: from registering to expiry or removal. */
export type RegistrationLife = Pick<Registration, keyof InstanceKey | 'id'>;

/** A heartbeat on its way to the store. */
export interface HeartbeatWrite {
  /** When the heartbeat came, by the wall clock. */
  readonly at: Date;
  /** How long ago that was, by the monotonic clock. */
  readonly ageMs: number;
}

/**
 * A write's object was changed or replaced by somebody else in the meantime: read again, decide
 * again.
 */
export class ChangedMeanwhileError extends Error {
  constructor(options?: ErrorOptions) {
    super('the registration was changed meanwhile', options);
    this.name = 'ChangedMeanwhileError';
  }
}

/**
 * Registrations and their heartbeats. Every write that succeeded is visible to `find` at once. All
 * methods but `find` throw the store's own errors when it does not answer.
 */
export interface RegistrationStore {
  /** From the local copy, expired ones included. */
  find(key: InstanceKey): Registration | undefined;
  /** All instances of a service, from the local copy, expired ones included; the oldest first. */
  instancesOf(serviceName: string): readonly Registration[];
  /** How many registrations the subject has, expired ones included, from the local copy. */
  countOf(owner: string): number;
  /** From the backing store itself. */
  fetch(key: InstanceKey): Promise<Registration | undefined>;
  /** All instances of a service, from the backing store itself; the oldest first. */
  fetchInstances(serviceName: string): Promise<readonly Registration[]>;
  /**
   * A new registration with its first heartbeat.
   *
   * @throws ChangedMeanwhileError when the instance was registered first.
   */
  create(request: NewRegistration): Promise<Registration>;
  /**
   * The instances of the service in the order in which they were created, those at least that were
   * there when this one was.
   *
   * @throws RegistryError STORE_UNAVAILABLE when that is not to be known in time.
   */
  instancesSince(registration: Registration): Promise<readonly Registration[]>;
  /** Gives an instance the id of its service. @throws as {@link update}. */
  adopt(registration: Registration, serviceId: string): Promise<Registration>;
  /**
   * Changes URL and capabilities, and makes any decision to expire it that is under way fail.
   * @throws ChangedMeanwhileError when this life of the registration is over.
   */
  update(registration: Registration, request: RegistrationRequest): Promise<Registration>;
  /**
   * Renews the heartbeat record of one life of a registration.
   *
   * @returns false when there is none any more: it is gone, being expired, or another life has
   * begun.
   */
  renew(life: RegistrationLife, heartbeat: HeartbeatWrite): Promise<boolean>;
  /** Starts the heartbeat record of a registration that has none. @throws as {@link update}. */
  startHeartbeats(registration: Registration, heartbeat: HeartbeatWrite): Promise<void>;
  /**
   * @returns false when it was gone already.
   * @throws ChangedMeanwhileError when another life has begun.
   */
  remove(registration: Registration): Promise<boolean>;
  /**
   * Keeps what a service said of itself.
   *
   * @throws ChangedMeanwhileError when this life of the registration is over.
   */
  report(registration: Registration, report: ServiceReport): Promise<void>;
  /** Keeps what federation made of an instance's schema. @throws as {@link report}. */
  reportComposition(registration: Registration, composition: Composition): Promise<void>;
}

/** How the schema of a service stands with the graph. */
export const compositionStatuses = ['composed', 'held', 'unreachable', 'removed'] as const;

/** What federation made of the schema of a service. */
export interface Composition {
  readonly status: (typeof compositionStatuses)[number];
  /** Why, for people. */
  readonly message: string;
}

/** What a service says of itself (contract 1, `/webhooks/health` and `/webhooks/lifecycle`). */
export interface ServiceReport {
  readonly kind: 'health' | 'lifecycle';
  /** The status of its health, or the event of its life. */
  readonly word: string;
  readonly at: Date;
  readonly details: ReportDetails;
}

export type ReportDetails = Readonly<Record<string, unknown>>;
