import { expect, test } from 'vitest';
import { encodeGrpcMessage, grpcStatus, grpcStatusOfHttp, retryTrailers } from './status.ts';

test.each([
  ['plain text, as it is', 'plain text, as it is'],
  ['100 %', '100 %25'],
  ['läuft\n', 'l%C3%A4uft%0A'],
  ['', ''],
])('%j is sent as %j', (message, encoded) => {
  expect(encodeGrpcMessage(message)).toBe(encoded);
  expect(decodeURIComponent(encoded)).toBe(message);
});

test('answers of HTTP have a status', () => {
  expect(grpcStatusOfHttp(503)).toBe(grpcStatus.UNAVAILABLE);
  expect(grpcStatusOfHttp(418)).toBe(grpcStatus.UNKNOWN);
});

test('when to come back, as protocol buffers have it', () => {
  const { pushbackMs, details } = retryTrailers(grpcStatus.RESOURCE_EXHAUSTED, 'no', 2300.2);
  expect(pushbackMs).toBe('2301');
  const type = Buffer.from('type.googleapis.com/google.rpc.RetryInfo');
  // Duration { seconds: 2, nanos: 301000000 } in RetryInfo { retry_delay = 1 }
  const duration = [0x08, 2, 0x10, 0xc0, 0xca, 0xc3, 0x8f, 0x01];
  const retryInfo = [0x0a, duration.length, ...duration];
  const any = [0x0a, type.length, ...type, 0x12, retryInfo.length, ...retryInfo];
  expect([...details]).toEqual([0x08, 8, 0x12, 2, 0x6e, 0x6f, 0x1a, any.length, ...any]);
});
