import { errorMessage } from '@rollcall/platform/errors.ts';
import { ask, type HttpAnswer, NoAnswerError } from '@rollcall/platform/outbound/exchange.ts';
import { foreignJson, storableText } from '@rollcall/platform/outbound/foreign-text.ts';
import { getIntrospectionQuery } from 'graphql/index.js';
import type { Dispatcher } from 'undici';
import type { ReadSchema } from '../domain/ports.ts';
import type { ReadFailure } from '../domain/subgraphs.ts';

export interface ReaderDeps {
  /** Connects only where it may. */
  readonly dispatcher: Dispatcher;
  /** See `Composer.sdlOf`. */
  readonly sdlOf: (introspection: string) => Promise<string>;
}

const TIMEOUT_MS = 5000;
const MOST_SDL_BYTES = 1024 * 1024;
/** JSON escapes what is in an SDL, and an introspection says the same in more words. */
const MOST_ANSWER_BYTES = 8 * MOST_SDL_BYTES;
const SDL_QUERY = '{ _service { sdl } }';
const INTROSPECTION_QUERY = getIntrospectionQuery();

/** Something answers, and not as GraphQL. */
class NoGraphqlError extends Error {}

/** By `_service { sdl }` of Federation, else by introspection. */
export function createSchemaReader({ dispatcher, sdlOf }: ReaderDeps): ReadSchema {
  async function ofUrl(url: string, signal: AbortSignal): Promise<string> {
    const { body } = await post(url, SDL_QUERY, signal);
    const sdl = sdlIn(graphqlOf(body));
    if (sdl !== undefined) return limited(sdl);
    const { body: introspection } = await post(url, INTROSPECTION_QUERY, signal);
    graphqlOf(introspection);
    return limited(await sdlOf(introspection));
  }

  async function post(url: string, query: string, signal: AbortSignal): Promise<HttpAnswer> {
    const answer = await ask(
      dispatcher,
      {
        method: 'POST',
        url: new URL(url),
        headers: { 'content-type': 'application/json', accept: 'application/json' },
        body: JSON.stringify({ query }),
        timeoutMs: TIMEOUT_MS,
        limitBytes: MOST_ANSWER_BYTES,
      },
      signal,
    );
    if (answer.cut) throw new Error(tooLarge());
    return answer;
  }

  return async (urls, signal) => {
    let failure: ReadFailure = { code: 'INTROSPECTION_FAILED', message: 'There is no URL to ask' };
    for (const url of urls) {
      try {
        return { url, sdl: await ofUrl(url, signal) };
      } catch (error) {
        signal.throwIfAborted();
        failure = failureOf(error);
        // At another path the same server would be asked.
        if (!(error instanceof NoGraphqlError)) break;
      }
    }
    return { failure };
  };
}

/** @throws NoGraphqlError where the body is no answer of GraphQL. */
function graphqlOf(body: string): object {
  const answer = foreignJson(body);
  if (typeof answer === 'object' && answer !== null && ('data' in answer || 'errors' in answer)) return answer;
  throw new NoGraphqlError('What answers there is not GraphQL');
}

/** Undefined: the service has no `_service`. */
function sdlIn(answer: object): string | undefined {
  const sdl = memberOf(memberOf(memberOf(answer, 'data'), '_service'), 'sdl');
  return typeof sdl === 'string' ? sdl : undefined;
}

function memberOf(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, name) : undefined;
}

function limited(sdl: string): string {
  if (Buffer.byteLength(sdl) > MOST_SDL_BYTES) throw new Error(tooLarge());
  return sdl;
}

function tooLarge(): string {
  return `The schema has more than ${MOST_SDL_BYTES} bytes`;
}

function failureOf(error: unknown): ReadFailure {
  const isRefused = error instanceof NoAnswerError && codeIn(error.cause) === 'ADDRESS_REFUSED';
  if (isRefused) return { code: 'URL_NOT_ALLOWED', message: 'The URL leads to an address that must not be called' };
  return { code: 'INTROSPECTION_FAILED', message: storableText(errorMessage(error).slice(0, 500)) };
}

function codeIn(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined;
}
