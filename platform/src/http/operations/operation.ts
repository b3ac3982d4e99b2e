/** What a caller's token may hold for the operations of Rollcall itself. */
export type Scope =
  | 'registrations:read'
  | 'registrations:write'
  | 'jobs:read'
  | 'jobs:write'
  | 'metrics:read'
  | `${MessageArea}:admin`
  | 'messages:send'
  | 'messages:read'
  | 'templates:write'
  | 'suppressions:write'
  | `${PaymentArea}:admin`
  | 'payments:write'
  | 'payments:read'
  | 'refunds:write'
  | 'billing:write'
  | 'billing:read'
  | 'schemas:read'
  | 'schemas:write';

type MessageArea = 'messages' | 'templates' | 'suppressions';
type PaymentArea = 'payments' | 'billing';

/** Whose things belong to the subject that made them: `<area>:admin` sees those of all. */
export type Area = MessageArea | PaymentArea;

/** Something that a caller may ask for, the same wherever it is asked for. */
export interface Operation {
  /** What it does, for people. */
  readonly name: string;
  /** What a client of the gateway needs for it. Undefined: nothing, not even a token at the service. */
  readonly scope: Scope | undefined;
  /**
   * `METHOD /path` below the service's `/api/v1`, or `/api` of federation, which the gateway has at
   * `/api/v1/<service>`. HEAD is GET.
   */
  readonly rest: readonly string[];
  /** Methods of rollcall.registry.v1.Registry. */
  readonly grpc?: readonly string[];
  /**
   * Fields of the root types of GraphQL, such as `Mutation.sendEmail`; and the types of entities,
   * which other subgraphs refer to.
   */
  readonly graphql?: readonly string[];
  /** Channels of the gateway's WebSocket endpoint. */
  readonly webSocket?: readonly string[];
  /** What its requests may have, where that is more than the gateway lets through otherwise. */
  readonly bodyLimitBytes?: number;
}
