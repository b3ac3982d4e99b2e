import { expect, test } from 'vitest';
import { compose } from './compose.ts';

const LINK = 'extend schema @link(url: "https://specs.apollo.dev/federation/v2.3", import: ["@shareable", "@key"])';
const TYPES = `interface Titled { title: String } type Book implements Titled @shareable { title: String }
  type Song implements Titled @shareable { title: String } union Work = Book | Song`;

/** What a field is in the supergraph of two subgraphs that have other types for it. */
function composed(inA: string, inB: string, root = 'Query'): string | undefined {
  const sources = [inA, inB].map((type, at) => {
    const schema = root === 'Query' ? '' : `schema { query: ${root} }`;
    const name = 'ab'.charAt(at);
    return { name, url: `http://${name}`, sdl: `${LINK} ${schema} type ${root} { it: ${type} @shareable } ${TYPES}` };
  });
  const { supergraph, errors } = compose(sources);
  expect(errors).toBeUndefined();
  return /it: .*/.exec(supergraph ?? '')?.[0];
}

test.each([
  ['Book', 'Work', 'it: Work @join__field(graph: A, type: "Book") @join__field(graph: B, type: "Work")'],
  ['Work', 'Book', 'it: Work @join__field(graph: A, type: "Work") @join__field(graph: B, type: "Book")'],
  ['Titled', 'Song', 'it: Titled @join__field(graph: A, type: "Titled") @join__field(graph: B, type: "Song")'],
  ['[Book!]!', '[Work]', 'it: [Work] @join__field(graph: A, type: "[Book!]!") @join__field(graph: B, type: "[Work]")'],
  ['Work', 'Work', 'it: Work'],
])('%s and %s', (...[inA, inB, expected]) => {
  expect(composed(inA, inB)).toBe(expected);
});

test('of a root type of another name', () => {
  expect(composed('Book', 'Work', 'Root')).toBe(
    'it: Work @join__field(graph: A, type: "Book") @join__field(graph: B, type: "Work")',
  );
});
