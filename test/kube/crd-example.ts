import type { ResourceKind } from '@rollcall/crds/resource-kind.ts';
import type { KubeObject } from '@rollcall/platform/kube/resource-client.ts';

/** An object by the parts that matter, right or wrong. */
export interface ExampleObject {
  readonly name: string;
  readonly spec?: unknown;
}

/** An object that the API server must accept, or refuse with a message that contains `refusal`. */
export interface Example {
  readonly kind: ResourceKind<KubeObject>;
  readonly sentence: string;
  readonly object: ExampleObject;
  readonly refusal?: string;
}

/** A merge patch of a stored object that the API server must accept, or refuse. */
export interface Update {
  readonly kind: ResourceKind<KubeObject>;
  readonly sentence: string;
  readonly before: ExampleObject;
  readonly patch: object;
  readonly subresource?: 'status';
  readonly refusal?: string;
}
