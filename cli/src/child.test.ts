import { expect, it } from 'vitest';
import { exitCodeOfSignal, exitCodeOfSpawnError } from './child.ts';

it.each([
  ['SIGHUP', 129],
  ['SIGINT', 130],
  ['SIGKILL', 137],
  ['SIGTERM', 143],
] as const)('a program ended by %s has exit code %d', (signal, code) => {
  expect(exitCodeOfSignal(signal)).toBe(code);
});

it.each([
  ['ENOENT', 127],
  ['EACCES', 126],
])('a program that could not be started for %s has exit code %d', (code, expected) => {
  expect(exitCodeOfSpawnError(Object.assign(new Error('spawn'), { code }))).toBe(expected);
});
