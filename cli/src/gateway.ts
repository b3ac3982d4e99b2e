import { RegistryError, unreachable } from '@rollcall/client/registry-error.ts';
import { checkToken } from '@rollcall/client/transport.ts';
import type { Command } from 'commander';
import type { CliDeps } from './deps.ts';
import { GatewayUnreachable, UsageError } from './exit-codes.ts';
import { refusalOf } from './refusal.ts';
import { chooseGateway, type GatewayChoice } from './settings.ts';

const TIMEOUT_MS = 30_000;

interface GatewayRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  /** Below `/api/v1`, encoded. */
  readonly path: string;
  readonly body?: object;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Calls of services behind the gateway. */
export interface Gateway {
  /** @throws RegistryError for refusals, and where nobody answers. */
  call<Body>(request: GatewayRequest): Promise<Body>;
  /** The answer as a text; empty where there is none. @throws as `call`. */
  text(request: GatewayRequest): Promise<string>;
}

/** `--gateway`, of the commands that need it. */
export function addGatewayOption(command: Command): Command {
  return command.option('--gateway <url>', 'gateway to ask (variable ROLLCALL_GATEWAY)');
}

/**
 * How a command is to reach the gateway: with the token that it is given, else with one for the
 * client in ROLLCALL_CLIENT_ID and ROLLCALL_CLIENT_SECRET, else for the client of `npm start`.
 *
 * @throws UsageError where there is no way to get a token.
 */
export function gatewayOf(command: Command, deps: CliDeps): Gateway {
  const options: { readonly gateway?: string; readonly token?: string } = command.optsWithGlobals();
  const choice = chooseGateway({ option: options.gateway, variable: deps.env['ROLLCALL_GATEWAY'], cwd: deps.cwd });
  const api = `${choice.url}/api/v1`;
  const tokenOf = tokenSource({ api, given: options.token ?? deps.env['ROLLCALL_TOKEN'] ?? '', choice, deps });
  const textOf = async ({ method, path, body, headers = {} }: GatewayRequest): Promise<string> =>
    answerTo(choice, `${api}${path}`, {
      method,
      headers: { authorization: `Bearer ${await tokenOf()}`, ...(body && JSON_TYPE), ...headers },
      body: body === undefined ? null : JSON.stringify(body),
    });
  return {
    async call<Body>(request: GatewayRequest): Promise<Body> {
      const parsed: Body = JSON.parse(await textOf(request));
      return parsed;
    },
    text: textOf,
  };
}

const JSON_TYPE = { 'content-type': 'application/json' };

interface TokenSourceOptions {
  readonly api: string;
  /** Empty: none. */
  readonly given: string;
  readonly choice: GatewayChoice;
  readonly deps: Pick<CliDeps, 'env'>;
}

function tokenSource({ api, given, choice, deps }: TokenSourceOptions): () => Promise<string> {
  if (given !== '') {
    checkToken(given);
    return async () => given;
  }
  const { ROLLCALL_CLIENT_ID: id = choice.client?.id, ROLLCALL_CLIENT_SECRET: secret = choice.client?.secret } =
    deps.env;
  if (id === undefined || secret === undefined)
    throw new UsageError(
      'the gateway wants a token: set ROLLCALL_TOKEN, or ROLLCALL_CLIENT_ID and ROLLCALL_CLIENT_SECRET',
    );
  return async () => {
    const grant = { grant_type: 'client_credentials', client_id: id, client_secret: secret };
    const text = await answerTo(choice, `${api}/auth/token`, {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: new URLSearchParams(grant).toString(),
    });
    const { access_token: token }: { readonly access_token: string } = JSON.parse(text);
    return token;
  };
}

async function answerTo({ source }: GatewayChoice, url: string, request: RequestInit): Promise<string> {
  const { origin } = new URL(url);
  try {
    const response = await fetch(url, { ...request, redirect: 'error', signal: AbortSignal.timeout(TIMEOUT_MS) });
    const text = await response.text();
    if (!response.ok) throw refusalOf({ status: response.status, text, server: origin });
    return text;
  } catch (error) {
    if (error instanceof RegistryError) throw error;
    const { message } = unreachable(origin, error);
    throw new GatewayUnreachable(`${message} (gateway chosen by ${source})`, { cause: error });
  }
}
