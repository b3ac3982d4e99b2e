import { expect, it } from 'vitest';
import { formatFacts, formatRow, formatTable } from './table.ts';

it('aligns columns under their titles, without spaces at the end', () => {
  const rows = [
    ['shop', 'http://10.0.0.7:8080', 'rest'],
    ['店', 'http://x', ''],
    ['evil\u001b[2J', 'http://y', 'rest,grpc'],
  ];
  expect(formatTable(['NAME', 'URL', 'CAPABILITIES'], rows)).toBe(
    [
      'NAME       URL                    CAPABILITIES',
      'shop       http://10.0.0.7:8080   rest',
      '店         http://x               -',
      'evil\uFFFD[2J   http://y               rest,grpc',
      '',
    ].join('\n'),
  );
});

it('shows the titles of an empty table', () => {
  expect(formatTable(['NAME', 'URL'], [])).toBe('NAME   URL\n');
});

it('lets a long cell of a row push the others', () => {
  expect(formatRow(['abcdef', 'x', 'y'], [3, 3, 3])).toBe('abcdef   x     y\n');
});

it('writes facts one below the other', () => {
  expect(formatFacts({ Name: 'shop', 'Last heartbeat': '' })).toBe('Name:             shop\nLast heartbeat:   -\n');
});
