import type { DeliveryJobStatus } from '@rollcall/crds/types.gen.ts';
import { expect, test } from 'vitest';
import { buildAtStage, buildTemplate, NEW, OLD } from '../testing/builders.ts';
import { planJob } from './plan.ts';

test.for([
  ['what ran already', OLD, '1.1.0', 'Unchanged'],
  ['the same image by another version', OLD, '1.0.0', 'Succeeded'],
  ['another image of the same version', NEW, '1.1.0', 'Succeeded'],
  ['another version', NEW, '1.0.0', 'Succeeded'],
] as const)('a job that brings %s ends as such', ([, image, oldVersion, reason]) => {
  const saved = { target: buildTemplate(image) };
  const status = { oldVersion };
  const { changes } = planJob(
    buildAtStage({ strategy: 'Rolling', stage: 'Finishing', saved, status, isClaimed: false }),
  );
  const ends = changes.flatMap((change): DeliveryJobStatus[] =>
    change.action === 'status' ? [change.status as DeliveryJobStatus] : [],
  );
  // The strategy and the deadline are as saved, so that nothing has to be handed back first.
  expect(ends.map((end) => [end.phase, end.reason])).toEqual([['Succeeded', reason]]);
});
