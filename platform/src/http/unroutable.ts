import type { IncomingMessage } from 'node:http';
import type { HttpError } from './errors.ts';

/** No route has this path, and none but one for all paths matches it. */
const NO_ROUTE = '/%25';

/**
 * Requests that the router refuses, for which Fastify runs no hook: their answers had no id and no
 * line in a log, and no page could read them. They are routed once more, as if they were for a path
 * that no route has, and refused behind the hooks.
 */
export class Unroutable {
  readonly #refusals = new WeakMap<
    IncomingMessage,
    { readonly url: string | undefined; readonly refusal: HttpError }
  >();

  /** Makes the request one that can be routed. */
  detour(request: IncomingMessage, refusal: HttpError): void {
    this.#refusals.set(request, { url: request.url, refusal });
    request.url = NO_ROUTE;
  }

  /** Gives the request its own path back, once it is routed. */
  restore(request: IncomingMessage): void {
    const refused = this.#refusals.get(request);
    if (refused !== undefined) request.url = refused.url;
  }

  /** @returns undefined where the router found one. */
  refusalOf(request: IncomingMessage): HttpError | undefined {
    return this.#refusals.get(request)?.refusal;
  }
}
