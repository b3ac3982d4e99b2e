import { expect, test } from 'vitest';
import { formatTraceparent, readTraceContext, spanIdOf, traceFlagsOf, traceIdOf } from './trace-context.ts';

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const SPAN = '00f067aa0ba902b7';

test('what is written can be read', () => {
  const traceparent = formatTraceparent(TRACE, SPAN, true);
  expect(readTraceContext(traceparent, 'a=1')).toEqual({ traceparent, tracestate: 'a=1' });
  expect([traceIdOf(traceparent), spanIdOf(traceparent), traceFlagsOf(traceparent)]).toEqual([TRACE, SPAN, 1]);
  expect(traceFlagsOf(formatTraceparent(TRACE, SPAN, false))).toBe(0);
});

test.each([
  ['nothing', undefined],
  ['two of them', [`00-${TRACE}-${SPAN}-01`, `00-${TRACE}-${SPAN}-01`]],
  ['two in one', `00-${TRACE}-${SPAN}-01, 00-${TRACE}-${SPAN}-01`],
  ['a trace of zeros', `00-${'0'.repeat(32)}-${SPAN}-01`],
  ['a span of zeros', `00-${TRACE}-${'0'.repeat(16)}-01`],
  ['capitals', `00-${TRACE.toUpperCase()}-${SPAN}-01`],
  ['something behind it', `00-${TRACE}-${SPAN}-01-x`],
  ['a line break', `00-${TRACE}-${SPAN}-01\n`],
])('%s is no context, whatever tracestate says', (_, traceparent) => {
  expect(readTraceContext(traceparent, 'a=1')).toBeUndefined();
});

test('an empty tracestate is none', () => {
  expect(readTraceContext(`00-${TRACE}-${SPAN}-00`, '')?.tracestate).toBeUndefined();
});
