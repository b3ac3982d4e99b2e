/** HTTP status and message of each error the simulator answers with. */
const ERRORS = {
  20003: { status: 401, message: 'Authenticate' },
  20404: { status: 404, message: 'The requested resource was not found' },
  20429: { status: 429, message: 'Too Many Requests' },
  20500: { status: 500, message: 'An internal server error has occurred' },
  20503: { status: 503, message: 'Service is unavailable' },
  21211: { status: 400, message: "The 'To' number is not a valid phone number." },
  21212: {
    status: 400,
    message: "The 'From' number is not a valid phone number, shortcode, or alphanumeric sender ID.",
  },
  21602: { status: 400, message: 'Message body is required.' },
  21603: { status: 400, message: "A 'From' phone number is required." },
  21604: { status: 400, message: "A 'To' phone number is required." },
  21606: { status: 400, message: "The 'From' phone number is not a valid, message-capable Twilio phone number." },
  21609: { status: 400, message: "The 'StatusCallback' URL is not a valid URL." },
  21610: { status: 400, message: 'Attempt to send to unsubscribed recipient' },
  21614: { status: 400, message: "'To' number is not a valid mobile number" },
  21617: { status: 400, message: 'The concatenated message body exceeds the 1600 character limit.' },
  21701: { status: 400, message: 'The Messaging Service does not exist.' },
  21729: { status: 400, message: 'The ValidityPeriod is out of range.' },
} as const;

export type TwilioErrorCode = keyof typeof ERRORS;

export interface TwilioErrorAnswer {
  readonly status: number;
  readonly body: {
    readonly code: number;
    readonly message: string;
    readonly more_info: string;
    readonly status: number;
  };
}

/** An error as Twilio answers it. https://www.twilio.com/docs/api/errors */
export function twilioError(code: TwilioErrorCode): TwilioErrorAnswer {
  const { status, message } = ERRORS[code];
  return { status, body: { code, message, more_info: `https://www.twilio.com/docs/errors/${code}`, status } };
}

/** What Twilio says with a status that is nobody's fault, or a caller's that sends too much. */
export function twilioErrorOfStatus(status: number): unknown {
  const code = status === 429 ? 20429 : status === 503 ? 20503 : 20500;
  return { ...twilioError(code).body, status };
}
