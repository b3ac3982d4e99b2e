import { commonError } from '@rollcall/platform/common-errors.ts';
import type { App } from '@rollcall/platform/http/server.ts';
import type { Routes } from '@rollcall/platform/service/app.ts';
import type { FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { Value } from 'typebox/value';
import { refusals } from '../../domain/errors.ts';
import type { Receiving } from '../domain/inbox.ts';
import { Provider } from './schemas.ts';

/** No provider sends so much. */
const LIMIT_BYTES = 256 * 1024;

export interface NotificationRoutesDeps {
  readonly receiving: Receiving;
  /** Something is to be worked off. */
  readonly wake: () => void;
}

/** What providers tell. Signatures cover the bytes, so no body is parsed. */
export function notificationRoutes({ receiving, wake }: NotificationRoutesDeps): Routes {
  return (app) => {
    void app.register((scope, _options, done) => {
      scope.removeAllContentTypeParsers();
      scope.addContentTypeParser('*', { parseAs: 'buffer', bodyLimit: LIMIT_BYTES }, (_request, body, parsed) => {
        parsed(null, body);
      });
      addRoute(scope, { receiving, wake });
      done();
    });
  };
}

function addRoute(app: App, { receiving, wake }: NotificationRoutesDeps): void {
  app.post(
    '/notifications/:provider',
    {
      schema: {
        tags: ['payments'],
        summary: 'A provider tells what happened; it signs what it sends',
        params: Type.Object({ provider: Type.String({ description: 'payfast, yoco, stripe or sandbox' }) }),
        response: { 200: Type.Object({ received: Type.Boolean() }) },
      },
      config: {
        refuses: refusals('FORGED', 'MALFORMED', 'NOT_VERIFIED'),
      },
    },
    async (request) => {
      const body = Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0);
      const { provider } = request.params;
      if (!Value.Check(Provider, provider)) throw commonError('NOT_FOUND');
      await receiving.receive(provider, {
        headers: plainHeaders(request),
        body,
        remoteAddress: senderOf(request),
      });
      wake();
      return { received: true };
    },
  );
}

function plainHeaders({ headers }: Pick<FastifyRequest, 'headers'>): Record<string, string | undefined> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, value?.toString()]));
}

/** The gateway says it, and lets no caller say it. */
function senderOf({ headers }: Pick<FastifyRequest, 'headers'>): string | undefined {
  return headers['x-real-ip']?.toString();
}
