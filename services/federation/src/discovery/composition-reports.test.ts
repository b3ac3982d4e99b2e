import { RegistryError } from '@rollcall/client/registry-error.ts';
import { systemClock } from '@rollcall/platform/clock.ts';
import { createLogger } from '@rollcall/platform/process/log.ts';
import { expect, onTestFinished, test } from 'vitest';
import { createCompositionReports, reportOf } from './composition-reports.ts';

const standing = { goneAt: null, failure: null, errors: [], sdl: 't', isLeftOut: false };
const clash = { code: 'FIELD_TYPE_MISMATCH', message: 'Two\ntypes\u202eof `a`' };

test.each([
  [{}, { status: 'composed', message: 'Its newest schema is in the graph' }],
  [{ errors: [clash] }, { status: 'held', message: 'FIELD_TYPE_MISMATCH: Two types of `a`' }],
  [{ errors: [clash, clash, clash] }, { status: 'held', message: 'FIELD_TYPE_MISMATCH: Two types of `a`; and 2 more' }],
  [
    { failure: { code: 'INTROSPECTION_FAILED' as const, message: 'no answer' }, errors: [clash] },
    { status: 'unreachable', message: 'no answer' },
  ],
  [{ sdl: null }, { status: 'unreachable', message: 'Its schema has not been read yet' }],
  [{ isLeftOut: true }, { status: 'removed', message: 'Somebody took it out of the graph' }],
  [{ goneAt: new Date(0) }, undefined],
])('of %j the registry is told', (more, report) => {
  expect(reportOf({ ...standing, ...more })).toEqual(report);
});

test('a long message is cut, and not within a character', () => {
  const errors = [{ code: 'X', message: `${'x'.repeat(996)}😀` }];
  const { message = '' } = reportOf({ ...standing, errors }) ?? {};
  expect(message).toHaveLength(1000);
  expect(message.endsWith('x\ufffd')).toBe(true);
});

test('of a service that the registry does not take the others do not suffer, and it is told of again', async () => {
  const told: string[] = [];
  const reports = createCompositionReports({
    registry: {
      async reportComposition(service) {
        told.push(service);
        if (service === 'first') throw new RegistryError('Not now', { error: 'Unavailable', status: 503 });
        return { status: 'ok', message: 'Told' };
      },
    },
    store: { standings: async () => new Map(['first', 'second'].map((service) => [service, standing])) },
    sighting: (service) => ({ service, places: [], instances: '1' }),
    clock: systemClock,
    log: createLogger('test', 'silent'),
  });
  onTestFinished(() => reports.stop());
  await reports.start();
  await expect.poll(() => told.slice(0, 3)).toEqual(['first', 'second', 'first']);
});

test('what the registry may have taken without an answer is put right', async () => {
  const told: string[] = [];
  let isHeld = false;
  const reports = createCompositionReports({
    registry: {
      async reportComposition(_service, { status }) {
        told.push(status);
        if (status === 'composed') return { status: 'ok', message: 'Told' };
        isHeld = false;
        throw new RegistryError('The answer was lost', { error: 'NO_ANSWER' });
      },
    },
    store: { standings: async () => new Map([['first', { ...standing, errors: isHeld ? [clash] : [] }]]) },
    sighting: (service) => ({ service, places: [], instances: '1' }),
    clock: systemClock,
    log: createLogger('test', 'silent'),
  });
  onTestFinished(() => reports.stop());
  await reports.start();
  await expect.poll(() => told).toEqual(['composed']);
  isHeld = true;
  await expect.poll(() => told).toEqual(['composed', 'held', 'composed']);
});
