import axe, { type AxeResults } from 'axe-core';
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { expect } from 'vitest';

const COLOURS = ['light', 'dark'] as const;
const BROKEN_POLICY = /Content Security Policy/;

export interface Opened extends AsyncDisposable {
  readonly page: Page;
  /** What the policies of pages did not allow. */
  readonly violations: readonly string[];
}

/** Opens a page as somebody with a browser of his own. @param options such as `javaScriptEnabled`. */
export async function open(browser: Browser, url: string, options: BrowserContextOptions = {}): Promise<Opened> {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  const violations: string[] = [];
  page.on('console', (message) => {
    if (BROKEN_POLICY.test(message.text())) violations.push(message.text());
  });
  await page.goto(url);
  return { page, violations, [Symbol.asyncDispose]: () => context.close() };
}

/** Goes to the control of a name by the keyboard alone, and presses Enter. */
export async function pressWithKeyboard(page: Page, name: string): Promise<void> {
  for (let presses = 0; presses < 20; presses += 1) {
    await page.keyboard.press('Tab');
    const focused = page.locator(':focus');
    if ((await focused.count()) === 1 && (await focused.innerText()) === name) {
      // Who sees it knows where he is.
      expect(await page.evaluate('getComputedStyle(document.activeElement).outlineStyle')).not.toBe('none');
      await page.keyboard.press('Enter');
      return;
    }
  }
  throw new Error(`The keyboard does not lead to ${name}`);
}

/** What axe-core finds wrong, in light and dark, for people who see, hear or move little. */
export async function findBarriers(browser: Browser, page: Page): Promise<readonly string[]> {
  // It waits for timers, which pages without scripts have not.
  const copy = await browser.newPage();
  await copy.setContent((await page.content()).replace(/<script>.*?<\/script>/s, ''));
  await copy.evaluate(axe.source);
  const found: string[] = [];
  for (const colorScheme of COLOURS) {
    await copy.emulateMedia({ colorScheme });
    const { violations } = await copy.evaluate<AxeResults>('axe.run()');
    found.push(
      ...violations.map(({ id, nodes }) => `${colorScheme} ${id}: ${nodes.map(({ html }) => html).join(' ')}`),
    );
  }
  await copy.close();
  await page.bringToFront();
  return found;
}
