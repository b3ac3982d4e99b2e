import { type Clock, systemClock } from '@rollcall/platform/clock.ts';
import { type FastifyInstance, type FastifyReply, type FastifyRequest, fastify } from 'fastify';
import { bytesOf, readable } from './bodies.ts';
import { addControl } from './control.ts';
import { createFaults, type FaultRule, isTaken, type RequestFaultRule } from './faults.ts';
import { misbehave, never } from './misbehaviour.ts';
import {
  createNotifier,
  type Notification,
  type NotificationTiming,
  type Notifier,
  type SentNotification,
} from './notifier.ts';

/** SendGrid takes mails of 30 MB; no provider takes more. */
const BODY_LIMIT_BYTES = 32 * 1024 * 1024;
const HOST = '127.0.0.1';

/** What every simulator is started with. */
export interface SimulatorOptions {
  /** On 127.0.0.1; a free one when absent. */
  readonly port?: number;
  readonly clock?: Clock;
  /** When notifications that were not taken are sent again; the provider's own times when absent. */
  readonly retryDelaysMs?: readonly number[];
}

/** What one provider does, of which {@link startSimulator} makes a server. */
export interface Simulation {
  /** Lower case, such as `twilio`. */
  readonly name: string;
  /**
   * Adds the provider's routes. Their bodies are the bytes that came, a Buffer, whatever the content
   * type; undefined where there was none.
   */
  readonly routes: (app: FastifyInstance, context: SimulationContext) => void;
  /** What a client has to be configured with, for `GET /_control/credentials`. */
  readonly credentials: (url: string) => unknown;
  /** What it holds, such as messages, for `GET /_control/state`. */
  readonly state: () => unknown;
  /** Forgets what it holds. */
  readonly reset: () => void;
  /** Where it sends what no request says where to send; absent: there is no such thing. */
  readonly setWebhook?: (url: string) => void;
  /** What a recipient writes, as the provider hands it on; absent: it takes no messages. */
  readonly incoming?: (message: IncomingText) => Notification | undefined;
  /** The words for what can become of a recipient, for `PUT /_control/outcomes`. */
  readonly outcomes: readonly string[];
  /** The body of an answer that a fault decided. */
  readonly errorBody: (status: number) => unknown;
  /** In milliseconds. */
  readonly retryDelaysMs: readonly number[];
}

/** What somebody writes to a sender. */
export interface IncomingText {
  /** Of E.164. */
  readonly from: string;
  readonly text: string;
}

/** What the frame does for a provider's routes. */
export interface SimulationContext {
  readonly clock: Clock;
  /** Where the simulator listens, without a slash at its end. */
  readonly url: () => string;
  /** What was said by the control API to become of a recipient; undefined: the best. */
  readonly outcomeOf: (recipient: string) => string | undefined;
  /**
   * Sends notifications in their order once the request is answered, unless a fault says otherwise.
   * To be awaited before answering.
   */
  readonly notify: (
    request: FastifyRequest,
    sequence: readonly Notification[],
    timing?: Pick<NotificationTiming, 'isBeforeTheAnswer'>,
  ) => Promise<void>;
}

/** A request that came to a provider's routes. */
interface ReceivedRequest {
  readonly at: Date;
  readonly method: string;
  /** With the query. */
  readonly target: string;
  readonly contentType: string | undefined;
  /** As people read it: without the escapes of a form. */
  readonly body: string;
  readonly fault: FaultRule['kind'] | undefined;
  /** What the provider made of it; undefined while it works on it, and where it was not taken. */
  readonly status: number | undefined;
  /** Whether it took effect, whatever the caller was told. */
  readonly isAccepted: boolean;
}

/** A running simulator, and its control API for callers in the same process. */
export interface Simulator extends AsyncDisposable {
  readonly name: string;
  /** Without a slash at its end. */
  readonly url: string;
  addFaults(...rules: readonly FaultRule[]): void;
  /** @throws Error for a word that the provider does not know. */
  setOutcomes(outcomes: Readonly<Record<string, string>>): void;
  /**
   * Says where notifications go from now on, where requests do not.
   *
   * @throws Error where the provider has no such setting, or the text is no URL.
   */
  setWebhook(url: string): void;
  /**
   * Has somebody write to a sender; it is handed on as a notification.
   *
   * @throws Error where the provider hands on none, or does not know where to.
   */
  write(message: IncomingText): Promise<void>;
  requests(): readonly ReceivedRequest[];
  notifications(): readonly SentNotification[];
  /** Resolves when no notification is left to be sent, or sent again. */
  idle(): Promise<void>;
  /** Forgets everything: faults, outcomes, requests, notifications, what the provider holds. */
  reset(): Promise<void>;
  /** Cuts every connection. To stop again does nothing. */
  stop(): Promise<void>;
}

/** Starts a provider on 127.0.0.1, with the control API under `/_control`. */
export async function startSimulator(simulation: Simulation, options: SimulatorOptions): Promise<Simulator> {
  const { port = 0, clock = systemClock, retryDelaysMs = simulation.retryDelaysMs } = options;
  const faults = createFaults();
  const notifier = createNotifier({ faults, clock, retryDelaysMs });
  const app = fastify({ bodyLimit: BODY_LIMIT_BYTES, forceCloseConnections: true });
  let outcomes: ReadonlyMap<string, string> = new Map();
  let received: Exchange[] = [];
  let url = '';
  let stopped: Promise<void> | undefined;

  const simulator: Simulator = {
    name: simulation.name,
    get url() {
      return url;
    },
    addFaults: (...rules) => faults.add(rules),
    setOutcomes(given) {
      checkOutcomes(simulation, given);
      outcomes = new Map([...outcomes, ...Object.entries(given)]);
    },
    setWebhook: (given) => setWebhook(simulation, given),
    write: (message) => handOn(simulation, notifier, message),
    requests: () => received.map(({ request }) => request),
    notifications: () => notifier.sent(),
    idle: () => notifier.idle(),
    async reset() {
      faults.clear();
      outcomes = new Map();
      received = [];
      simulation.reset();
      await notifier.clear();
    },
    async stop() {
      stopped ??= app.close().then(() => notifier.stop());
      await stopped;
    },
    [Symbol.asyncDispose]: () => simulator.stop(),
  };

  const exchanges = new WeakMap<FastifyRequest, Exchange>();
  void app.register(async (scope) => {
    takeAnyBody(scope);
    scope.addHook('preHandler', async (request, reply) => {
      const body = readable(bytesOf(request), request.headers['content-type']);
      const fault = faults.takeForRequest(`${request.method} ${request.url}\n${body}`);
      const exchange = begin(request, reply, { at: clock.now(), body, fault });
      received.push(exchange);
      exchanges.set(request, exchange);
      if (fault === undefined || isTaken(fault)) return;
      reply.send('');
      await never();
    });
    scope.addHook('onSend', async (request, reply, payload) => {
      const exchange = exchanges.get(request);
      if (exchange === undefined) return payload;
      exchange.conclude(reply.statusCode);
      const { fault, wasAnswered } = exchange;
      if (fault === undefined) return payload;
      return await misbehave(fault, { request, reply, payload, wasAnswered, errorBody: simulation.errorBody });
    });
    simulation.routes(scope, {
      clock,
      url: () => url,
      outcomeOf: (recipient) => outcomes.get(recipient),
      notify: (request, sequence, { isBeforeTheAnswer } = { isBeforeTheAnswer: false }) =>
        notifier.send(sequence, {
          answered: exchanges.get(request)?.answered ?? Promise.resolve(),
          isBeforeTheAnswer,
        }),
    });
  });
  addControl(app, {
    simulator,
    credentials: () => simulation.credentials(url),
    state: simulation.state,
  });
  url = await app.listen({ host: HOST, port });
  return simulator;
}

function checkOutcomes({ outcomes: known }: Simulation, given: Readonly<Record<string, string>>): void {
  for (const [recipient, outcome] of Object.entries(given)) {
    if (!known.includes(outcome)) throw new Error(`${recipient}: no outcome ${outcome}, but ${known.join(', ')}`);
  }
}

function setWebhook(simulation: Simulation, url: string): void {
  if (simulation.setWebhook === undefined) throw new Error(`${simulation.name} is told by its requests where to send`);
  if (!URL.canParse(url)) throw new Error('send {"url": "http://…"}');
  simulation.setWebhook(url);
}

async function handOn({ name, incoming }: Simulation, notifier: Notifier, message: IncomingText): Promise<void> {
  const notification = incoming?.(message);
  if (notification === undefined) throw new Error(`${name} has nowhere to hand messages on to`);
  await notifier.send([notification], { answered: Promise.resolve(), isBeforeTheAnswer: false });
}

/** A request and what becomes of it. */
interface Exchange {
  request: ReceivedRequest;
  readonly fault: RequestFaultRule | undefined;
  readonly answered: Promise<void>;
  readonly wasAnswered: () => void;
  readonly conclude: (status: number) => void;
}

function begin(
  { method, url: target, headers }: FastifyRequest,
  { raw }: FastifyReply,
  { at, body, fault }: { at: Date; body: string; fault: RequestFaultRule | undefined },
): Exchange {
  const { promise: answered, resolve: wasAnswered } = Promise.withResolvers<void>();
  raw.once('close', wasAnswered);
  const exchange: Exchange = {
    request: {
      at,
      method,
      target,
      contentType: headers['content-type'],
      body,
      fault: fault?.kind,
      status: undefined,
      isAccepted: false,
    },
    fault,
    answered,
    wasAnswered,
    conclude(status) {
      if (fault !== undefined && !isTaken(fault)) return;
      exchange.request = { ...exchange.request, status, isAccepted: status < 400 };
    },
  };
  return exchange;
}

function takeAnyBody(app: FastifyInstance): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
}
