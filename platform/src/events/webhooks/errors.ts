import { type ErrorCatalogue, ServiceError } from '../../errors.ts';
import type { AllowedAddresses } from '../../outbound/address-rules.ts';

/** What the webhooks of subjects refuse, at communication and payment alike. */
export const webhookErrors = {
  URL_NOT_ALLOWED: {
    status: 422,
    message:
      'The URL leads where webhooks may not go, by the setting of the service; else it has to be of https, and on the internet',
  },
  TOO_MANY_WEBHOOK_ENDPOINTS: { status: 422, message: 'A subject may have 20 webhook endpoints; delete one first' },
} as const satisfies ErrorCatalogue;

type WebhookErrorCode = keyof typeof webhookErrors;

/** Where webhooks may go, for who named another URL. */
const whereTo: Readonly<Record<AllowedAddresses, string>> = {
  public: 'has to be of https, and on the internet',
  cluster: 'has to be on the internet or in a private network',
  loopback: 'has to be on the machine of the service, such as http://127.0.0.1:8080',
  any: 'may be anywhere',
};

export function webhookError(code: WebhookErrorCode, message?: string): ServiceError<WebhookErrorCode> {
  return new ServiceError(code, webhookErrors[code], { message });
}

/** @param addresses where webhooks may go here. */
export function urlNotAllowed(addresses: AllowedAddresses): ServiceError<WebhookErrorCode> {
  return webhookError('URL_NOT_ALLOWED', `The URL leads where webhooks may not go: it ${whereTo[addresses]}`);
}
