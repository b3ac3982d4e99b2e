import type { Caller } from '../../admission/caller.ts';
import type { Endpoints } from '../../upstream/discovery/endpoints.ts';

/** A method of a gRPC service, as it stands in the path. */
export interface GrpcMethod {
  /** `package.Service` */
  readonly service: string;
  readonly method: string;
}

/** Where calls of a registered service go. */
export interface GrpcTarget {
  /** The name of the registration. */
  readonly service: string;
  /** `http://host:port` (h2c), or `https://host:port`. */
  readonly origin: string;
  readonly endpoints: Endpoints;
  /** What a caller's token must have for a method; absent: nothing. */
  readonly scopesFor?: (method: GrpcMethod) => readonly string[];
}

/** What is registered. */
export interface GrpcTargets<Target = GrpcTarget> {
  /** The live registration of that name, where it has the capability `grpc`. */
  find(serviceName: string): Target | undefined;
  /** Whether what is registered is known: false until the first list has come. */
  known(): boolean;
}

/** What the limit says to one call. */
export interface CallAllowance {
  readonly allowed: boolean;
  /** Goes with the answer, by names in lower case: `x-ratelimit-limit` and the like. */
  readonly headers: Readonly<Record<string, string>>;
  /** When it is worth trying again; of no meaning where the call is allowed. */
  readonly retryAfterMs: number;
}

/** Who is to be counted. */
export interface CallOrigin {
  /** Undefined: the call shows no token that is valid, and counts for its address. */
  readonly caller: Caller | undefined;
  /** Of the connection; undefined once that is gone. */
  readonly remoteAddress: string | undefined;
  /** The header `x-forwarded-for`. */
  readonly forwardedFor: string | undefined;
}

/** Ends the count of one call. */
export type TakeCall = (origin: CallOrigin) => CallAllowance | Promise<CallAllowance>;

/**
 * The headers by which a backend knows who calls: names in lower case, and values in turn. It may
 * throw a GatewayError: the caller may not call that service then.
 */
export type IdentityHeaders = (caller: Caller, service: string) => readonly string[] | Promise<readonly string[]>;
