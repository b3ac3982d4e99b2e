import { type ErrorCatalogue, ServiceError } from '../../errors.ts';

/** What the webhooks of subjects refuse, at communication and payment alike. */
export const webhookErrors = {
  URL_NOT_ALLOWED: {
    status: 422,
    message: 'The URL leads where webhooks may not go: it has to be of https, and on the internet',
  },
  TOO_MANY_WEBHOOK_ENDPOINTS: { status: 422, message: 'A subject may have 20 webhook endpoints; delete one first' },
} as const satisfies ErrorCatalogue;

type WebhookErrorCode = keyof typeof webhookErrors;

export function webhookError(code: WebhookErrorCode): ServiceError<WebhookErrorCode> {
  return new ServiceError(code, webhookErrors[code]);
}
