import { type DestinationStream, type Logger, type LoggerOptions, pino } from 'pino';

export type { DestinationStream as LogDestination, Logger } from 'pino';

const SECRET_PATHS = [
  'authorization',
  '*.authorization',
  'req.headers.authorization',
  'headers.authorization',
  'secret',
  '*.secret',
  'webhook_secret',
  '*.webhook_secret',
  'token',
  '*.token',
  'password',
  '*.password',
];

/**
 * A JSON logger. Fields that usually hold secrets are redacted whoever logs them.
 *
 * @param destination standard output unless given.
 */
export function createLogger(
  name: string,
  level: string,
  destination: DestinationStream = pino.destination(1),
): Logger {
  const options: LoggerOptions = {
    name,
    level,
    base: { name },
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label) => ({ level: label }) },
    redact: { paths: SECRET_PATHS, censor: '[redacted]' },
  };
  return pino(options, destination);
}
