import { errorMessage } from '@rollcall/platform/errors.ts';
import type { FastifyInstance } from 'fastify';
import { Type } from 'typebox';
import { Value } from 'typebox/value';
import { parseFaultRules } from './faults.ts';
import type { Simulator } from './simulator.ts';

const Webhook = Type.Object({ url: Type.String() });
const Message = Type.Object({ from: Type.String(), text: Type.String() });
const Outcomes = Type.Record(Type.String(), Type.String());

export interface ControlOptions {
  readonly simulator: Simulator;
  readonly credentials: () => unknown;
  readonly state: () => unknown;
}

/** The control API: how a simulator is told to misbehave, and asked what it saw. */
export function addControl(app: FastifyInstance, { simulator, credentials, state }: ControlOptions): void {
  void app.register(
    async (scope) => {
      scope.setErrorHandler(
        async (error, _request, reply) => await reply.code(400).send({ error: errorMessage(error) }),
      );
      scope.post('/faults', async (request, reply) => {
        simulator.addFaults(...parseFaultRules(request.body));
        return await reply.code(204).send();
      });
      scope.put('/outcomes', async (request, reply) => {
        if (!Value.Check(Outcomes, request.body)) throw new Error('send {"<recipient>": "<outcome>"}');
        simulator.setOutcomes(request.body);
        return await reply.code(204).send();
      });
      scope.put('/webhook', async (request, reply) => {
        if (!Value.Check(Webhook, request.body)) throw new Error('send {"url": "http://…"}');
        simulator.setWebhook(request.body.url);
        return await reply.code(204).send();
      });
      scope.post('/messages', async (request, reply) => {
        if (!Value.Check(Message, request.body)) throw new Error('send {"from": "+27…", "text": "…"}');
        await simulator.write(request.body);
        return await reply.code(204).send();
      });
      scope.get('/requests', async () => simulator.requests());
      scope.get('/notifications', async () => simulator.notifications());
      scope.get('/state', async () => state());
      scope.get('/credentials', async () => credentials());
      scope.delete('/', async (_request, reply) => {
        await simulator.reset();
        return await reply.code(204).send();
      });
    },
    { prefix: '/_control' },
  );
}
