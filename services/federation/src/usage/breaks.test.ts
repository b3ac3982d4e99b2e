import { describe, expect, test } from 'vitest';
import { compose } from '../composition/compose.ts';
import { findBreaks } from './breaks.ts';

const supergraphOf = (sdl: string) => compose([{ name: 'shop', url: 'http://shop', sdl }]).supergraph ?? '';
const before =
  supergraphOf(`type Query { user(id: ID, in: Where): User } type User { id: ID! name: String color: Color }
  input Where { city: String color: Color near: Where } enum Color { RED GREEN }`);

const breaksAfter = (sdl: string, ...documents: readonly string[]) => findBreaks(before, supergraphOf(sdl), documents);

const USER = 'type User { id: ID! name: String color: Color } enum Color { RED GREEN }';
const WHERE = 'input Where { city: String color: Color near: Where }';
const ASKS = 'query ($in: Where) { user(in: $in) { id } }';

test('the same graph breaks nothing', () => {
  expect(findBreaks(before, before, [ASKS, '{ user(id: 1) { name } }'])).toEqual([[], []]);
});

describe('an operation is broken by', () => {
  test.each([
    [
      'a field that is gone',
      `type Query { user(id: ID, in: Where): User } type User { id: ID! } ${WHERE} enum Color { RED GREEN }`,
      '{ user { name } }',
      'Cannot query field "name"',
    ],
    [
      'an argument that is gone',
      `type Query { user(id: ID): User } ${USER}`,
      '{ user(in: {city: ""}) { id } }',
      'Unknown argument "in"',
    ],
    [
      'an argument that is needed now',
      `type Query { user(id: ID!, in: Where): User } ${USER} ${WHERE}`,
      '{ user { id } }',
      'argument "id" of type "ID!" is required',
    ],
    [
      'a value that is gone',
      `type Query { user(id: ID, in: Where): User } type User { id: ID! } ${WHERE} enum Color { GREEN }`,
      '{ user(in: {color: RED}) { id } }',
      '"RED"',
    ],
    [
      'a value that a variable may have',
      `type Query { user(id: ID, in: Where): User } type User { id: ID! } ${WHERE} enum Color { GREEN }`,
      ASKS,
      'Value "RED" of enum "Color" is gone',
    ],
    [
      'an input field that a variable may have',
      `type Query { user(id: ID, in: Where): User } ${USER} input Where { city: String color: Color }`,
      ASKS,
      'Field "near" of input "Where" is gone',
    ],
    [
      'an input field that is needed now',
      `type Query { user(id: ID, in: Where): User } ${USER} input Where { city: String color: Color near: Where zip: Int! }`,
      ASKS,
      'Field "zip" of input "Where" is new, and required',
    ],
    [
      'an input field that is stricter',
      `type Query { user(id: ID, in: Where): User } ${USER} input Where { city: String! color: Color near: Where }`,
      ASKS,
      '"Where.city" is of type "String!", not "String"',
    ],
    [
      'a variable of another type',
      `type Query { user(id: Int, in: Where): User } ${USER} ${WHERE}`,
      'query ($id: ID) { user(id: $id) { id } }',
      'of type "ID" used in position expecting type "Int"',
    ],
  ])('%s', (...[, sdl, document, message]) => {
    expect(breaksAfter(sdl, document)).toEqual([[expect.stringContaining(message)]]);
  });
});

test('what was wrong before, and what only gets more, is not broken', () => {
  const more = `type Query { user(id: ID, in: Where, more: Int): User other: Int } ${USER} input Where { city: String color: Color near: Where zip: Int }`;
  expect(breaksAfter(more, ASKS, '{ user { gone } }', '{ user(id: "") { id } }')).toEqual([[], [], []]);
});
