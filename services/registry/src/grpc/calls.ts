import {
  type Metadata,
  type ServerUnaryCall,
  type ServerWritableStream,
  type sendUnaryData,
  status,
} from '@grpc/grpc-js';
import type { Operation } from '@rollcall/platform/http/operations/operation.ts';
import { grpcOperation } from '@rollcall/platform/http/scopes.ts';
import type { Logger } from '@rollcall/platform/process/log.ts';
import type { Tracer } from '@rollcall/platform/tracing/tracer.ts';
import { Histogram, type Registry } from 'prom-client';
import type { StreamCaller } from '../feeds/stream-limits.ts';
import { type Authentication, admit, type Credentials, credentialsOf } from '../http/authentication.ts';
import { streamCaller } from '../http/stream-caller.ts';
import { endCallSpan, startCallSpan } from './call-span.ts';
import { type CallFailure, statusOfError } from './errors.ts';

export interface CallsDeps {
  readonly log: Logger;
  readonly metrics: Registry;
  /** Undefined: no authentication. */
  readonly authentication: Authentication | undefined;
  /** Undefined: calls are not traced. */
  readonly tracer: Tracer | undefined;
}

/** Methods that change nothing. */
const READS: ReadonlySet<string> = new Set(['Get', 'List', 'Watch']);

/** What a unary method does. @param subject who calls; undefined where authentication is off. */
type UnaryMethod<Request, Response> = (request: Request, subject: string | undefined) => Response | Promise<Response>;

/**
 * What all methods have in common: who calls, the status of errors, metrics, and traces of unary
 * ones.
 */
export interface Calls {
  /** A handler of grpc-js for the method. */
  unary<Request, Response>(
    name: string,
    method: UnaryMethod<Request, Response>,
  ): (call: ServerUnaryCall<Request, Response>, callback: sendUnaryData<Response>) => void;
  /**
   * For whom a stream is counted.
   *
   * @throws RegistryError UNAUTHENTICATED, ADMITTED_FOR_ANOTHER, INSUFFICIENT_SCOPE.
   */
  streamCallerOf(call: Pick<ServerWritableStream<unknown, unknown>, 'metadata' | 'getPeer'>): Promise<StreamCaller>;
  /** The end of a call that failed. */
  failureOf(name: string, error: unknown): CallFailure;
  /** @returns to be called with the status that the call ends with. */
  measure(name: string): (code: status) => void;
}

export function createCalls({ log, metrics, authentication, tracer }: CallsDeps): Calls {
  const duration = new Histogram({
    name: 'rollcall_registry_grpc_call_duration_seconds',
    help: 'Duration of gRPC calls, streams included.',
    labelNames: ['method', 'code'],
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5],
    registers: [metrics],
  });

  async function answer<Request, Response>(
    { name, method }: { readonly name: string; readonly method: UnaryMethod<Request, Response> },
    call: ServerUnaryCall<Request, Response>,
    callback: sendUnaryData<Response>,
  ): Promise<void> {
    const measured = calls.measure(name);
    const span = tracer && startCallSpan(tracer, name, call);
    const ended = (code: status) => {
      measured(code);
      if (span !== undefined) endCallSpan(span, code);
    };
    try {
      const subject = await callerOf(name, shownIn(call.metadata));
      // Nobody waits for it any more: its deadline is over, or its caller gave it up.
      if (call.cancelled) return ended(status.CANCELLED);
      const message = await method(call.request, subject);
      ended(status.OK);
      callback(null, message);
    } catch (error) {
      const failure = calls.failureOf(name, error);
      ended(failure.code);
      callback(failure);
    }
  }

  /** @throws RegistryError UNAUTHENTICATED, ADMITTED_FOR_ANOTHER, INSUFFICIENT_SCOPE. */
  const callerOf = async (name: string, shown: Credentials): Promise<string | undefined> =>
    admit(authentication, {
      operation: methodOperation(name),
      access: READS.has(name) ? 'read' : undefined,
      shown,
    });

  const calls: Calls = {
    unary: (name, method) => (call, callback) => void answer({ name, method }, call, callback),
    async streamCallerOf(call) {
      const credentials = shownIn(call.metadata);
      const subject = await callerOf('Watch', credentials);
      // `<address>:<port>`. The gateway lets nobody in here without an identity.
      const address = call.getPeer().replace(/:\d+$/, '');
      return streamCaller({ credentials, subject, address, isProxied: false });
    },
    failureOf(name, error) {
      const known = statusOfError(error);
      if (known !== undefined) return known;
      log.error({ err: error, method: name }, 'gRPC call failed');
      return { code: status.INTERNAL, details: 'The call failed for a reason of ours' };
    },
    measure(name) {
      const end = duration.startTimer({ method: name });
      return (code) => void end({ code: status[code] });
    },
  };
  return calls;
}

/** @throws Error for a method that the table of scopes lacks. */
function methodOperation(name: string): Operation {
  const operation = grpcOperation(name);
  if (operation === undefined) throw new Error(`The table of scopes lacks the method ${name}`);
  return operation;
}

function shownIn(metadata: Metadata): Credentials {
  return credentialsOf((name) => metadata.get(name)[0]?.toString());
}
