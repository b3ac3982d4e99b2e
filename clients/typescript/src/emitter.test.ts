import { describe, expect, it } from 'vitest';
import { createEmitter } from './emitter.ts';

interface Events {
  change: number;
  end: { readonly reason: string };
}

describe('emitter', () => {
  it('calls the listeners of the type until they unsubscribe', () => {
    const emitter = createEmitter<Events>();
    const heard: unknown[] = [];
    const off = emitter.on('change', (value) => heard.push(value));
    emitter.on('end', ({ reason }) => heard.push(reason));
    emitter.emit('change', 1);
    off();
    emitter.emit('change', 2);
    emitter.emit('end', { reason: 'done' });
    expect(heard).toEqual([1, 'done']);
  });

  it('lets a listener unsubscribe while it is called', () => {
    const emitter = createEmitter<Events>();
    const heard: string[] = [];
    const off = emitter.on('change', () => {
      heard.push('once');
      off();
    });
    emitter.on('change', () => heard.push('always'));
    emitter.emit('change', 1);
    emitter.emit('change', 2);
    expect(heard).toEqual(['once', 'always', 'always']);
  });

  it('reports the error of a listener as uncaught, after the others were called', async () => {
    const emitter = createEmitter<Events>();
    const heard: number[] = [];
    emitter.on('change', () => {
      throw new Error('from a listener');
    });
    emitter.on('change', (value) => heard.push(value));
    const others = process.listeners('uncaughtException');
    process.removeAllListeners('uncaughtException');
    const uncaught = new Promise((resolve) => process.once('uncaughtException', resolve));
    emitter.emit('change', 1);
    expect(heard).toEqual([1]);
    expect(await uncaught).toMatchObject({ message: 'from a listener' });
    for (const listener of others) process.on('uncaughtException', listener);
  });
});
