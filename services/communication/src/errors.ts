import { type ErrorCatalogue, ServiceError } from '@rollcall/platform/errors.ts';

/** What the communication service refuses or cannot do, beside what it has in common with payment. */
export const errorCatalogue = {
  CONFLICT: { status: 409, message: 'The state of the message does not allow it; GET /messages/{id} shows it' },
  TEMPLATE_NOT_FOUND: { status: 422, message: 'There is no template of that name; GET /templates lists them' },
  TEMPLATE_VARIABLES: {
    status: 422,
    message: 'Variables of the template are missing or wrong; details.fields has each',
  },
  TOO_MANY_TEMPLATES: {
    status: 422,
    message: 'The caller has as many templates as one subject may have; delete some',
  },
  PRECONDITION_FAILED: {
    status: 412,
    message: 'It was changed since it was read, or is there already; read it again',
  },
  RATE_LIMITED: { status: 429, message: 'The limit of the operation is used up; wait for the time in Retry-After' },
  NO_PROVIDER: { status: 503, message: 'No provider is configured that takes such a message' },
} as const satisfies ErrorCatalogue;

type ErrorCode = keyof typeof errorCatalogue;

/** An error of the communication service. The message is for the caller: it must not hold secrets. */
export class CommunicationError extends ServiceError<ErrorCode> {
  constructor(code: ErrorCode, options?: ConstructorParameters<typeof ServiceError>[2]) {
    super(code, errorCatalogue[code], options);
    this.name = 'CommunicationError';
  }
}
