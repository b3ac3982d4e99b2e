import { expect, test } from 'vitest';
import { joined } from './joined.ts';

test('parameters are counted on from one statement to the next', () => {
  const tens = Array.from({ length: 10 }, (_, index) => index);
  const first = { name: 'made', text: 'INSERT INTO a VALUES ($1, $2, $1) RETURNING id', values: ['x', 1] };
  const second = { name: 'told', text: 'INSERT INTO b SELECT id, $2, $10 FROM made', values: tens };
  expect(joined('make', [first, second], 'SELECT id FROM made')).toEqual({
    name: 'make: made,told',
    text:
      'WITH made AS (INSERT INTO a VALUES ($1, $2, $1) RETURNING id), ' +
      'told AS (INSERT INTO b SELECT id, $4, $12 FROM made) SELECT id FROM made',
    values: ['x', 1, ...tens],
  });
});
