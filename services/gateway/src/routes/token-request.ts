export const TOKEN_PATH = '/api/v1/auth/token';

/**
 * The errors of RFC 6749, section 5.2, and RFC 8693, section 2.2.2, that a request can be at fault
 * for, with their statuses.
 */
const STATUSES = {
  invalid_request: 400,
  invalid_client: 401,
  unauthorized_client: 400,
  invalid_target: 400,
  unsupported_grant_type: 400,
  invalid_scope: 400,
} as const;

/** A refusal of the token endpoint, in the words of RFC 6749, section 5.2. */
export class OAuthError extends Error {
  readonly status: number;
  readonly error: keyof typeof STATUSES;

  /** @param description what is wrong and what to do; neither `"` nor `\\`. */
  constructor(error: keyof typeof STATUSES, description: string) {
    super(description);
    this.name = 'OAuthError';
    this.error = error;
    this.status = STATUSES[error];
  }
}

interface OAuthErrorBody {
  readonly error: string;
  readonly error_description: string;
}

/**
 * The body of any error of the token endpoint. What RFC 6749 has no word for gets those of RFC
 * 6749, section 4.1.2.1: `temporarily_unavailable` (429, 503) and `server_error`.
 *
 * @param payload the body that the gateway would answer with elsewhere, or one that is in the RFC's
 * shape already.
 */
export function oauthErrorBody(status: number, payload: unknown): OAuthErrorBody {
  if (isOAuthBody(payload)) return payload;
  const { error }: { error?: { message?: unknown } } = typeof payload === 'object' && payload !== null ? payload : {};
  const description = typeof error?.message === 'string' ? error.message : 'The request failed';
  return { error: errorOf(status), error_description: description.replaceAll(/["\\]/g, "'") };
}

function isOAuthBody(payload: unknown): payload is OAuthErrorBody {
  return typeof payload === 'object' && payload !== null && 'error' in payload && typeof payload.error === 'string';
}

function errorOf(status: number): string {
  if (status === 429 || status === 503) return 'temporarily_unavailable';
  return status >= 500 ? 'server_error' : 'invalid_request';
}

export interface Credentials {
  readonly id: string;
  readonly secret: string;
}

/**
 * What a client authenticates with (RFC 6749, section 2.3.1): form-encoded in HTTP Basic, or in the
 * form.
 *
 * Many clients do not encode for HTTP Basic. A secret with `+` or `%` then reads otherwise than it
 * is meant: both readings are returned, the RFC's first.
 *
 * @throws OAuthError invalid_client where there is no credential; invalid_request for half of one,
 * or for two.
 */
export function credentialsOf(authorization: string | undefined, form: URLSearchParams): readonly Credentials[] {
  const [id, secret] = [form.get('client_id'), form.get('client_secret')];
  if (authorization === undefined) {
    if (id !== null && secret !== null) return [{ id, secret }];
    if (secret !== null) throw new OAuthError('invalid_request', 'Give the client_id that the client_secret is of');
    throw new OAuthError('invalid_client', 'Give client id and secret by HTTP Basic, or in the form');
  }
  if (secret !== null) {
    throw new OAuthError('invalid_request', 'Authenticate by HTTP Basic or by the form, not by both');
  }
  const basic = basicCredentials(authorization);
  if (id !== null && basic.every((credentials) => credentials.id !== id)) {
    throw new OAuthError('invalid_request', 'The client_id in the form is another one than in HTTP Basic');
  }
  return basic;
}

function basicCredentials(authorization: string): readonly Credentials[] {
  const [, encoded] = /^Basic +([A-Za-z0-9+/]+=*)$/i.exec(authorization) ?? [];
  const text = Buffer.from(encoded ?? '', 'base64').toString('utf8');
  const colon = text.indexOf(':');
  if (colon === -1) {
    throw new OAuthError('invalid_client', 'Authorization must be Basic with client id and secret');
  }
  const plain = { id: text.slice(0, colon), secret: text.slice(colon + 1) };
  const decoded = { id: formDecoded(plain.id), secret: formDecoded(plain.secret) };
  return decoded.id === plain.id && decoded.secret === plain.secret ? [plain] : [decoded, plain];
}

/** What is no form encoding stands for itself. */
function formDecoded(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch {
    return text;
  }
}
