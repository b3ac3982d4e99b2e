import { expect, test } from 'vitest';
import { compose } from './compose.ts';

const LINK = `extend schema @link(url: "https://specs.apollo.dev/federation/v2.6", import: ["@authenticated",
  { name: "@requiresScopes", as: "@needs" }])`;
const INTERFACE = 'type Query { node: Node } interface Node { id: ID } type A implements Node { id: ID }';

const errorsOf = (sdl: string) => compose([{ name: 'a', url: 'http://a', sdl: `${LINK} ${sdl}` }]).errors;

test.each(['@authenticated', '@needs(scopes: [["a"]])', '@federation__policy(policies: [["a"]])'])(
  'an interface cannot be for some alone by %s, nor by an extension of it',
  (rule) => {
    const refused = [expect.objectContaining({ code: 'AUTH_REQUIREMENTS_APPLIED_ON_INTERFACE' })];
    expect(errorsOf(`${INTERFACE} extend interface Node ${rule}`)).toEqual(refused);
    expect(errorsOf(INTERFACE.replace('Node {', `Node ${rule} {`))).toEqual(refused);
  },
);

test.each(['@needs(scopes: [])', '@federation__policy(policies: [])'])('%s is refused', (rule) => {
  expect(errorsOf(`type Query { a: Int ${rule} }`)).toMatchObject([{ code: 'EMPTY_AUTH_REQUIREMENTS' }]);
});

test('directives of the same names that are not those of Federation are left alone', () => {
  const sdl = 'directive @policy(policies: [Int]) on INTERFACE extend interface Node @policy(policies: [])';
  expect(errorsOf(`${INTERFACE} ${sdl}`)).toBeUndefined();
});
