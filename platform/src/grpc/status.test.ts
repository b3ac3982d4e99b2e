import { expect, test } from 'vitest';
import { encodeGrpcMessage, grpcStatus, grpcStatusOfHttp, retryPushback } from './status.ts';

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

test('when to come back, in whole milliseconds', () => {
  expect(retryPushback(2300.2)).toBe('2301');
  expect(retryPushback(-1)).toBe('0');
});
