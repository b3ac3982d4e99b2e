import { expect, test } from 'vitest';
import { withTrace } from './call-span.ts';

test('what the caller says of a trace is replaced, each time it says it, and all else stays in order', () => {
  const forwarded = [
    'traceparent',
    'theirs',
    'x-a',
    '1',
    'tracestate',
    'theirs=1',
    'x-a',
    '2',
    'traceparent',
    'theirs',
  ];
  const kept = ['x-a', '1', 'x-a', '2', 'traceparent', 'ours'];
  expect(withTrace(forwarded, { traceparent: 'ours', tracestate: undefined })).toEqual(kept);
  expect(withTrace(forwarded, { traceparent: 'ours', tracestate: 'a=1' })).toEqual([...kept, 'tracestate', 'a=1']);
});
