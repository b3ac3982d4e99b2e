import { describe, expect, test } from 'vitest';
import { goProblem, requiredGoVersion } from './go-toolchain.ts';

const go = (version: string, toolchain = 'auto') => ({ version, toolchain });

describe('goProblem', () => {
  test.each([
    ['the same version', go('go1.26.0')],
    ['a newer patch release', go('go1.26.8', 'local')],
    ['a newer minor release', go('go1.30.1', 'local')],
    ['an older Go that fetches newer toolchains', go('go1.21.0')],
    ['a development version', go('go1.26.1-X:nocoverageredesign', 'local')],
  ])('none: %s', (_, environment) => expect(goProblem(environment, '1.26.0')).toBeUndefined());

  test.each([
    ['no Go at all', undefined, 'is not installed'],
    ['older than toolchain switching', go('go1.19.8'), 'Go 1.19.8 is too old'],
    ['older, and bound to itself', go('go1.25.9', 'local'), 'Go 1.25.9 is too old'],
  ])('%s: says what to do', (_, environment, sentence) => {
    const problem = goProblem(environment, '1.26.0');
    expect(problem).toContain(sentence);
    expect(problem).toContain('Install Go 1.26.0 or newer');
    expect(problem).toContain('KUBEBUILDER_ASSETS');
  });
});

test('requiredGoVersion reads the go line', () => {
  expect(requiredGoVersion('module a\n\ngo 1.26.0\n')).toBe('1.26.0');
  expect(() => requiredGoVersion('module a\n')).toThrow('no go line');
});
