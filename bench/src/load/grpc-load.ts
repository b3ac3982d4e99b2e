import { Client, credentials, Metadata } from '@grpc/grpc-js';
import { runAtPace, type Send } from './pace.ts';
import type { GrpcTask, LoadResult } from './tasks.ts';

const MESSAGE = Buffer.alloc(100, 'x');
const PATH = '/bench.v1.Echo/Unary';
const asItIs = (bytes: Buffer): Buffer => bytes;

/** Runs a {@link GrpcTask}. */
export async function runGrpcLoad(task: GrpcTask): Promise<LoadResult> {
  const clients = Array.from({ length: task.connections }, () => {
    // Channels to the same address share a connection else.
    const options = { 'grpc.use_local_subchannel_pool': 1 };
    return new Client(`127.0.0.1:${task.port}`, credentials.createInsecure(), options);
  });
  const metadata = new Metadata();
  metadata.set('authorization', `Bearer ${task.token}`);
  const senders = Array.from({ length: task.calls }, (_unused, index): Send => {
    const client = clients[index % clients.length];
    return () =>
      new Promise((resolve) => {
        // A code of HTTP, as the results of all loads have it.
        client?.makeUnaryRequest(PATH, asItIs, asItIs, MESSAGE, metadata, (error) =>
          resolve(error === null ? 200 : 500),
        );
      });
  });
  try {
    return await runAtPace(task.pace, senders);
  } finally {
    for (const client of clients) client.close();
  }
}
