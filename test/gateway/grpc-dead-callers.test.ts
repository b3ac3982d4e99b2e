import { once } from 'node:events';
import { connect } from 'node:http2';
import { waitUntil } from '@rollcall/local/wait.ts';
import { describe, expect, onTestFinished, test } from 'vitest';
import { gaugeOf, startBackend, startProxy, type TestProxy, TOKEN } from './grpc-fixture.ts';
import { type Frame, frameType, type RawPeer, rawCaller } from './raw-http2.ts';

const hello = Buffer.from([0, 0, 0, 0, 1, 7]);
const WAIT = { timeoutMs: 10_000 };
const IMPATIENT = { pingIntervalMs: 1000, pingTimeoutMs: 1000 };
const GOAWAY = { type: frameType.GOAWAY, payload: Buffer.alloc(8) };
const BIDI = { ':path': '/rollcall.test.v1.Echo/Bidi', authorization: `Bearer ${TOKEN}` };

/** A caller with a call that the backend has answered, and not ended. */
async function callerWithCall(proxy: TestProxy): Promise<RawPeer> {
  const caller = await rawCaller(proxy.port);
  onTestFinished(() => void caller.socket.destroy());
  caller.call(1, BIDI);
  caller.send({ type: frameType.DATA, streamId: 1, payload: hello });
  await waitUntil('it is answered', async () => caller.frames.some(({ type }) => type === frameType.DATA), WAIT);
  return caller;
}

/** Open calls and connections. */
async function left(proxy: TestProxy): Promise<readonly number[]> {
  return Promise.all([gaugeOf(proxy, 'open_calls'), gaugeOf(proxy, 'connections')]);
}

const NOTHING = [0, 0];
const POLL = { timeout: 10_000 };

describe('a caller with a call under way', () => {
  test('that answers no ping is disconnected', async () => {
    await using backend = await startBackend();
    await using proxy = await startProxy({ backendPort: backend.port, limits: IMPATIENT });
    const { frames } = await callerWithCall(proxy);
    await expect.poll(() => left(proxy), POLL).toEqual(NOTHING);
    const asked = frames.filter(({ type, flags }) => type === frameType.SETTINGS && flags === 0);
    // Beside those that every connection begins with.
    expect(asked.length).toBeGreaterThan(1);
  });

  test('that has said that it goes, and vanishes, is disconnected', async () => {
    await using backend = await startBackend();
    await using proxy = await startProxy({ backendPort: backend.port, limits: IMPATIENT });
    const caller = await callerWithCall(proxy);
    caller.send(GOAWAY);
    await expect.poll(() => left(proxy), POLL).toEqual(NOTHING);
  });

  test.each<[string, Partial<Frame>]>([
    ['a ping of 7 bytes', { type: frameType.PING, payload: Buffer.alloc(7) }],
    ['settings of a wrong size', { type: frameType.SETTINGS, payload: Buffer.alloc(5) }],
    ['a continuation of nothing', { type: frameType.CONTINUATION, streamId: 1, payload: Buffer.alloc(7) }],
    ['data on a stream that is not open', { type: frameType.DATA, streamId: 99, payload: hello }],
  ])('that has said that it goes, sends %s, and goes, keeps nothing', async (_what, frame) => {
    await using backend = await startBackend();
    await using proxy = await startProxy({ backendPort: backend.port, limits: IMPATIENT });
    const caller = await callerWithCall(proxy);
    caller.send(GOAWAY);
    caller.send(frame);
    await new Promise((done) => setTimeout(done, 100));
    caller.socket.destroy();
    await expect.poll(() => left(proxy), POLL).toEqual(NOTHING);
  });

  test('that has said that it goes, and is there, keeps its call', async () => {
    await using backend = await startBackend();
    await using proxy = await startProxy({ backendPort: backend.port, limits: { ...IMPATIENT, idleMs: 1000 } });
    const session = connect(`http://127.0.0.1:${proxy.port}`);
    const stream = session.request({ ':method': 'POST', 'content-type': 'application/grpc', te: 'trailers', ...BIDI });
    stream.write(hello);
    await once(stream, 'data');
    session.close();
    await new Promise((done) => setTimeout(done, 5000));
    stream.end(hello);
    const [echo] = (await once(stream, 'data')) as [Buffer];
    expect(echo).toEqual(hello);
    stream.resume();
    await once(stream, 'close');
    expect(stream.rstCode).toBe(0);
  });
});

test('an idle connection that is closed is gone though its peer keeps its side open', async () => {
  await using proxy = await startProxy({ backendPort: 1, limits: { idleMs: 500 } });
  const { socket } = await rawCaller(proxy.port);
  onTestFinished(() => void socket.destroy());
  await waitUntil('it is there', async () => (await gaugeOf(proxy, 'connections')) === 1, WAIT);
  await once(socket, 'end');
  await expect.poll(() => left(proxy), POLL).toEqual(NOTHING);
});
