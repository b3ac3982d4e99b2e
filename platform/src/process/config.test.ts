import { Type } from 'typebox';
import { expect, test } from 'vitest';
import { parseConfig } from './config.ts';

const schema = Type.Object({
  PORT: Type.Integer({ minimum: 0, maximum: 65_535, default: 3001 }),
  NAME: Type.String({ minLength: 1 }),
  AUTH: Type.Boolean({ default: false }),
});

test('converts text, fills in defaults, ignores other variables and empty ones', () => {
  expect(parseConfig(schema, { NAME: 'x', PORT: '', AUTH: 'true', OTHER: '1' })).toEqual({
    NAME: 'x',
    PORT: 3001,
    AUTH: true,
  });
});

test('reports every fault in one message without repeating the values', () => {
  expect(() => parseConfig(schema, { PORT: '70000', AUTH: 'hunter2' })).toThrow(/PORT[\s\S]*AUTH|AUTH[\s\S]*PORT/);
  expect(() => parseConfig(schema, { PORT: '70000', AUTH: 'hunter2' })).toThrow(/NAME/);
  expect(() => parseConfig(schema, { PORT: '70000', AUTH: 'hunter2' })).not.toThrow(/hunter2/);
});

test('reports every fault however many there are', () => {
  const names = Array.from({ length: 20 }, (_, index) => `LEVEL_${index}`);
  const level = Type.Union([Type.Literal('debug'), Type.Literal('info')]);
  const many = Type.Object(Object.fromEntries(names.map((name) => [name, level])));
  const faulty = Object.fromEntries(names.map((name) => [name, 'loud']));
  const parse = () => parseConfig(many, faulty);
  for (const name of names) expect(parse).toThrow(name);
});
