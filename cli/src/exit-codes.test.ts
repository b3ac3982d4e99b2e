import { RegistryError } from '@rollcall/client/registry-error.ts';
import { CommanderError } from 'commander';
import { expect, it } from 'vitest';
import { exitCodeFor, GatewayUnreachable, JobFailure, UsageError } from './exit-codes.ts';

const answered = (status: number, error: string) => new RegistryError('x', { status, error });

it.each([
  { what: 'help that was asked for', error: new CommanderError(0, 'commander.helpDisplayed', 'x'), code: 0 },
  { what: 'an unknown option', error: new CommanderError(1, 'commander.unknownOption', 'x'), code: 2 },
  { what: 'wrong usage found later', error: new UsageError('x'), code: 2 },
  { what: 'an unknown service', error: answered(404, 'Service not found'), code: 3 },
  { what: 'an unknown job', error: answered(404, 'Job not found'), code: 1 },
  { what: 'an unknown release', error: answered(404, 'Release not found'), code: 1 },
  { what: 'a refusal', error: answered(400, 'Invalid service name'), code: 1 },
  { what: 'a store that is unavailable', error: answered(503, 'Store is not available'), code: 1 },
  { what: 'a job that was not followed to its end', error: new JobFailure('x', 3), code: 3 },
  { what: 'no answer', error: new RegistryError('x', { error: 'Registry unreachable' }), code: 4 },
  { what: 'no answer of the gateway', error: new GatewayUnreachable('x'), code: 4 },
  { what: 'anything else', error: new Error('x'), code: 1 },
])('$what ends with $code', ({ error, code }) => {
  expect(exitCodeFor(error)).toBe(code);
});
