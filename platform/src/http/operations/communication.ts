import type { Operation } from './operation.ts';

/** Of a mail: 10 MiB of attachments in base64, and its texts. */
export const MAIL_BODY_BYTES = 15 * 1024 * 1024;

/** What the communication service does. */
export const communicationOperations: readonly Operation[] = [
  {
    name: 'Send mails',
    scope: 'messages:send',
    rest: ['POST /emails'],
    graphql: ['Mutation.sendEmail'],
    bodyLimitBytes: MAIL_BODY_BYTES,
  },
  {
    name: 'Send other messages, put off, cancel and repeat any, keep devices, and have webhooks told of messages',
    scope: 'messages:send',
    rest: [
      'POST /sms',
      'POST /push',
      'PATCH /messages/:id',
      'POST /messages/:id/cancel',
      'POST /messages/:id/retry',
      'PUT /devices/:token',
      'DELETE /devices/:token',
      'POST /webhook-endpoints',
      'PATCH /webhook-endpoints/:id',
      'DELETE /webhook-endpoints/:id',
      'POST /webhook-endpoints/:id/rotate-secret',
      'POST /webhook-endpoints/:id/test',
      'POST /webhook-deliveries/:id/replay',
    ],
    graphql: ['Mutation.sendSMS', 'Mutation.sendPush'],
  },
  {
    // Templates and suppressions say what is sent, and to whom it is not.
    name: 'Read and watch messages, and what decides of them',
    scope: 'messages:read',
    rest: [
      'GET /messages',
      'GET /messages/:id',
      'GET /templates',
      'GET /templates/:name',
      'GET /templates/:name/versions',
      'POST /templates/:name/preview',
      'GET /devices',
      'GET /suppressions',
      'GET /providers',
      'GET /events',
      'GET /webhook-endpoints',
      'GET /webhook-endpoints/:id',
      'GET /webhook-deliveries',
      'GET /webhook-deliveries/:id',
    ],
    graphql: ['Query.message', 'Query.messages', 'Message'],
    webSocket: ['messages'],
  },
  {
    name: 'Write templates',
    scope: 'templates:write',
    rest: ['PUT /templates/:name', 'DELETE /templates/:name'],
  },
  {
    name: 'Write suppressions',
    scope: 'suppressions:write',
    rest: ['PUT /suppressions/:recipient', 'DELETE /suppressions/:recipient'],
  },
  {
    // Providers sign what they report.
    name: 'Read health and documentation, take reports of providers',
    scope: undefined,
    rest: ['GET /health', 'GET /openapi.json', 'GET /docs', 'GET /docs/*', 'POST /notifications/:provider'],
  },
];
