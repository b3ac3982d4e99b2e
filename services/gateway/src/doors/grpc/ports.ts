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
}

/** What is registered. */
export interface GrpcTargets<Target = GrpcTarget> {
  /** The live registration of that name, where it has the capability `grpc`. */
  find(serviceName: string): Target | undefined;
  /** Whether what is registered is known: false until the first list has come. */
  known(): boolean;
}

/**
 * The headers by which a backend knows who calls: names in lower case, and values in turn. It may
 * throw a GatewayError: the caller may not call that service then.
 */
export type IdentityHeaders = (caller: Caller, service: string) => readonly string[] | Promise<readonly string[]>;
