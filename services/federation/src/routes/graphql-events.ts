import type { Clock } from '@rollcall/platform/clock.ts';
import { commonError } from '@rollcall/platform/common-errors.ts';
import type { ReadCaller } from '@rollcall/platform/http/callers.ts';
import { createEventStreams } from '@rollcall/platform/http/event-streams.ts';
import { createConcurrencyLimiter } from '@rollcall/platform/queues/concurrency-limiter.ts';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { federationError } from '../errors.ts';
import type { PassedHeaders } from '../subgraphs/headers/passed-headers.ts';
import { shownCaller } from '../subgraphs/identities.ts';
import type { BeginOperation } from '../subscriptions/operations.ts';
import { clientNameOf } from './graphql-over-http.ts';
import type { Asked } from './graphql-requests.ts';

export interface GraphqlEventsDeps {
  readonly begin: BeginOperation;
  readonly readCaller: ReadCaller;
  readonly carried: PassedHeaders['carried'];
  readonly clock: Clock;
}

/** GraphQL by server-sent events (graphql-sse, a connection for each operation). */
export interface GraphqlEvents {
  /** @throws ServiceError where the caller is not known or has too many streams. */
  answer(request: FastifyRequest, reply: FastifyReply, asked: Asked): Promise<void>;
  /** Ends all, to be opened again elsewhere, and opens no more. */
  close(): void;
}

const MOST_STREAMS = 10_000;
/** Of one caller, or of one address where nobody knows who calls. */
const MOST_OF_ONE = 1000;
/** Of one stream, as of a WebSocket. */
const MOST_WAITING_BYTES = 1024 * 1024;
/** More is no time for a timer. */
const LONGEST_MS = 2 ** 31 - 1;

export function createGraphqlEvents({ begin, readCaller, carried, clock }: GraphqlEventsDeps): GraphqlEvents {
  const limiter = createConcurrencyLimiter({ most: MOST_STREAMS, mostPerKey: MOST_OF_ONE });
  const streams = createEventStreams({
    admit({ caller, ip }) {
      const leave = limiter.tryEnter(caller?.subject ?? ip);
      if (leave === undefined) throw federationError('TOO_MANY_SUBSCRIPTIONS');
      return leave;
    },
    stopping: () => commonError('UNAVAILABLE'),
    mostWaitingBytes: MOST_WAITING_BYTES,
  });

  return {
    async answer(request, reply, asked) {
      const { headers } = request;
      const caller = await readCaller(request);
      request.caller = caller;
      const stream = streams.open(reply);
      if (stream === undefined) return;
      const next = (answer: string) => stream.write(`event: next\ndata: ${answer}\n\n`);
      const leave = begin(
        { ...asked, client: clientNameOf(headers) },
        {
          context: { headers: carried(headers), caller: shownCaller(headers, caller) },
          next,
          end(errors) {
            if (errors !== undefined) next(JSON.stringify({ errors }));
            stream.end('event: complete\ndata:\n\n');
          },
        },
      );
      const leftMs = (caller?.expiresAtMs ?? Number.POSITIVE_INFINITY) - clock.now().getTime();
      const expiry = setTimeout(() => stream.end(), Math.min(leftMs, LONGEST_MS));
      stream.onClose(() => {
        clearTimeout(expiry);
        leave();
      });
    },
    close: () => streams.closeAll(),
  };
}
