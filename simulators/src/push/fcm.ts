import { createHash, createPublicKey, generateKeyPair, type KeyObject, randomUUID } from 'node:crypto';
import { promisify } from 'node:util';
import { systemClock } from '@rollcall/platform/clock.ts';
import type { FastifyInstance, FastifyReply } from 'fastify';
import { formOf, jsonOf } from '../bodies.ts';
import { type SimulationContext, type Simulator, type SimulatorOptions, startSimulator } from '../simulator.ts';
import { contentError, type Message } from './fcm-content.ts';
import {
  badRequest,
  type FcmErrorCode,
  fcmError,
  fcmErrorCodes,
  fcmErrorOfStatus,
  type GoogleError,
  permissionDenied,
  unauthenticated,
} from './fcm-errors.ts';
import { checkRequest } from './fcm-schema.ts';
import { createTokenServer, type TokenServer } from './google-tokens.ts';

const TOKEN_SECONDS = 3599;
/** An `INVALID_ARGUMENT` that blames the request: without the error of FCM. */
const BAD_REQUEST = 'BAD_REQUEST';

export interface FcmOptions extends SimulatorOptions {
  readonly projectId?: string;
  /** PKCS #8 in PEM; a new one when absent. */
  readonly privateKey?: string;
  /** How long an access token holds; 3599 when absent. */
  readonly tokenSeconds?: number;
}

interface SentMessage {
  /** `projects/<id>/messages/<id>` */
  readonly name: string;
  /** With names as in Google's JSON, without underscores. */
  readonly message: Message;
}

/**
 * Firebase Cloud Messaging, HTTP v1, and Google's token endpoint beside it, at `/token`.
 * https://firebase.google.com/docs/reference/fcm/rest/v1/projects.messages/send
 */
export async function startFcm(options: FcmOptions = {}): Promise<Simulator> {
  const { projectId = 'rollcall-simulator', tokenSeconds = TOKEN_SECONDS, clock = systemClock } = options;
  const privateKey = options.privateKey ?? (await newPrivateKey());
  const publicKey = createPublicKey(privateKey);
  const account = {
    clientEmail: `messages@${projectId}.iam.gserviceaccount.com`,
    keyId: keyIdOf(publicKey),
    publicKey,
  };
  const tokens = createTokenServer(account, tokenSeconds, clock);
  const sent: SentMessage[] = [];
  return await startSimulator(
    {
      name: 'fcm',
      routes: (app, context) => addRoutes(app, { ...context, projectId, tokens, sent }),
      credentials: (url) => ({
        baseUrl: url,
        serviceAccount: {
          type: 'service_account',
          project_id: projectId,
          private_key_id: account.keyId,
          private_key: privateKey,
          client_email: account.clientEmail,
          token_uri: `${url}/token`,
        },
      }),
      state: () => ({ messages: sent }),
      reset() {
        sent.length = 0;
        tokens.revokeAll();
      },
      outcomes: [...fcmErrorCodes, BAD_REQUEST],
      errorBody: fcmErrorOfStatus,
      retryDelaysMs: [],
    },
    options,
  );
}

interface Fcm extends SimulationContext {
  readonly projectId: string;
  readonly tokens: TokenServer;
  readonly sent: SentMessage[];
}

function addRoutes(app: FastifyInstance, fcm: Fcm): void {
  const { projectId, tokens, sent } = fcm;

  app.post<{ Body: Buffer | undefined }>('/token', async (request, reply) => {
    const form = formOf(request.body ?? Buffer.alloc(0)) ?? new URLSearchParams();
    const answer = await tokens.grant(form, `${fcm.url()}/token`);
    return await reply.code('error' in answer ? 400 : 200).send(answer);
  });

  // Two colons are one, and no parameter.
  const path = '/v1/projects/:project/messages::send';
  app.post<{ Body: Buffer | undefined; Params: { project: string } }>(path, async (request, reply) => {
    const token = /^Bearer (.+)$/.exec(request.headers.authorization ?? '')?.[1] ?? '';
    if (!tokens.isValid(token)) return await refuse(reply, unauthenticated());
    const { project } = request.params;
    if (project !== projectId) return await refuse(reply, permissionDenied(project));
    const { request: body, violations } = checkRequest(jsonOf(request.body ?? Buffer.alloc(0)));
    if (violations.length > 0) return await refuse(reply, badRequest(violations));
    const message: Message = isObject(body['message']) ? body['message'] : {};
    const error = contentError(message) ?? outcomeError(fcm.outcomeOf(String(message['token'])));
    if (error !== undefined) return await refuse(reply, error);
    const name = `projects/${project}/messages/${randomUUID()}`;
    if (body['validateOnly'] === true) return { name: `projects/${project}/messages/fake_message_id` };
    sent.push({ name, message });
    return { name };
  });
}

function outcomeError(outcome: string | undefined): GoogleError | undefined {
  if (outcome === BAD_REQUEST) return badRequest([{ field: 'message', description: 'Invalid JSON payload received.' }]);
  return isFcmErrorCode(outcome) ? fcmError(outcome) : undefined;
}

function isFcmErrorCode(outcome: string | undefined): outcome is FcmErrorCode {
  return outcome !== undefined && fcmErrorCodes.includes(outcome);
}

function isObject(value: unknown): value is Message {
  return typeof value === 'object' && value !== null;
}

/** The same for the same key, so that a key file holds when the simulator is started again. */
function keyIdOf(publicKey: KeyObject): string {
  return createHash('sha1')
    .update(publicKey.export({ type: 'spki', format: 'der' }))
    .digest('hex');
}

async function newPrivateKey(): Promise<string> {
  const { privateKey } = await promisify(generateKeyPair)('rsa', { modulusLength: 2048 });
  return privateKey.export({ type: 'pkcs8', format: 'pem' });
}

async function refuse(reply: FastifyReply, answer: GoogleError): Promise<FastifyReply> {
  return await reply.code(answer.error.code).send(answer);
}
