/** The protocols a service may say that it speaks (contract 1, "Service registration"). */
export const capabilityNames = ['rest', 'graphql', 'grpc', 'mcp'] as const;
export type Capability = (typeof capabilityNames)[number];

/**
 * Who made a registration: a program over HTTP, a manifest applied by hand, the operator from a
 * Kubernetes Service.
 */
type RegistrationSource = 'API' | 'Manifest' | 'KubernetesService';

/** A registration as the store has it. */
export interface Registration {
  readonly serviceName: string;
  readonly url: string;
  /** Identifier of this life of the registration; a new one after expiry or removal. */
  readonly id: string;
  readonly capabilities: readonly Capability[];
  readonly source: RegistrationSource;
  /** Undefined: it never expires for want of heartbeats. */
  readonly ttlSeconds: number | undefined;
  readonly registeredAt: Date;
  readonly phase: 'Registered' | 'Expired';
  /** The version that runs, as the service or a delivery job reported it. */
  readonly currentVersion: string | undefined;
  /** The subject that registered the name, where authentication was on. */
  readonly owner: string | undefined;
  /** Orders the states of all registrations; grows with every change. */
  readonly version: number;
}

/** What a program asks for when it registers. */
export interface RegistrationRequest {
  readonly serviceName: string;
  readonly url: string;
  readonly capabilities: readonly Capability[];
  readonly owner: string | undefined;
}

/** One life of a registration: from registering to expiry or removal. */
export type RegistrationLife = Pick<Registration, 'serviceName' | 'id'>;

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
  find(serviceName: string): Registration | undefined;
  /** How many registrations the subject has, expired ones included, from the local copy. */
  countOf(owner: string): number;
  /** From the backing store itself. */
  fetch(serviceName: string): Promise<Registration | undefined>;
  /**
   * A new registration with its first heartbeat.
   *
   * @throws ChangedMeanwhileError when the name was registered first.
   */
  create(request: RegistrationRequest, ttlSeconds: number): Promise<Registration>;
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
