/* What is wrong with how a page looks and reads; see looks.py. TOUCH is put in there. */
(() => {
  const faults = [];
  const say = (what, element) => faults.push(what + ": " + (element.textContent || element.outerHTML).trim().slice(0, 80));

  /* The page itself never scrolls sideways; what is wide scrolls in its own box. */
  const root = document.documentElement;
  if (root.scrollWidth > root.clientWidth) faults.push(`wider than its window: ${root.scrollWidth} of ${root.clientWidth} px`);

  /* Contrast as WCAG 2 defines it: 4.5, and 3 for large text. */
  const parts = (colour) => {
    const found = (colour.match(/[\d.]+/g) || []).map(Number);
    return { rgb: found.slice(0, 3), a: found.length > 3 ? found[3] : 1 };
  };
  const light = ([r, g, b]) => {
    const [x, y, z] = [r, g, b].map((v) => { v /= 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; });
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const behind = (element) => {
    for (let one = element; one; one = one.parentElement) {
      const found = parts(getComputedStyle(one).backgroundColor);
      if (found.a === 1) return found.rgb;
    }
    return [255, 255, 255];
  };
  const visible = (element) => element.checkVisibility({ visibilityProperty: true }) && !element.closest("details:not([open]) > :not(summary)");
  const inked = (element, colour) => {
    const style = getComputedStyle(element), size = parseFloat(style.fontSize);
    const [a, b] = [light(parts(colour).rgb), light(behind(element))].sort((x, y) => y - x);
    const large = size >= 24 || (size >= 18.66 && +style.fontWeight >= 700);
    if ((a + 0.05) / (b + 0.05) < (large ? 3 : 4.5)) say(`contrast ${((a + 0.05) / (b + 0.05)).toFixed(1)}`, element);
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const text = walker.currentNode, element = text.parentElement;
    if (!text.textContent.trim() || element.closest("script, style, svg, canvas") || !visible(element)) continue;
    inked(element, getComputedStyle(element).color);
  }

  /* Labels of charts: inside their picture, not upon one another, in a colour that shows. */
  for (const svg of document.querySelectorAll(".chart svg")) {
    const frame = svg.getBoundingClientRect();
    const labels = [...svg.querySelectorAll("text")].filter((one) => one.textContent.trim() && +getComputedStyle(one).opacity > 0)
      .map((one) => ({ one, text: one.textContent, box: one.getBoundingClientRect() }));
    labels.forEach(({ one, box }, at) => {
      if (box.left < frame.left - 1 || box.right > frame.right + 1 || box.top < frame.top - 1 || box.bottom > frame.bottom + 1) say("cut off", one);
      const fill = getComputedStyle(one).fill;
      if (fill !== "none" && getComputedStyle(one).stroke === "none") inked(one, fill);
      for (const other of labels.slice(at + 1)) {
        /* A text and the halo behind it are one label. */
        if (other.text === labels[at].text && Math.abs(other.box.left - box.left) < 1 && Math.abs(other.box.top - box.top) < 1) continue;
        const wide = Math.min(box.right, other.box.right) - Math.max(box.left, other.box.left);
        const high = Math.min(box.bottom, other.box.bottom) - Math.max(box.top, other.box.top);
        if (wide > TOUCH && high > TOUCH) say(`on '${other.text}'`, one);
      }
    });
  }

  /* What a screen reader needs. */
  for (const one of document.querySelectorAll("[role=img], [role=region], [role=group], nav")) if (!one.getAttribute("aria-label")) say("no aria-label", one);
  for (const one of document.querySelectorAll("input, select, textarea")) if (!(one.labels && one.labels.length) && !one.getAttribute("aria-label")) say("no label", one);
  for (const one of document.querySelectorAll("a[href], button, summary, h1, h2, h3")) if (!one.textContent.trim()) say("no text", one);
  for (const one of document.querySelectorAll("table")) if (!one.caption || !one.caption.textContent.trim()) say("no caption", one);
  for (const one of document.querySelectorAll("thead th")) if (one.scope !== "col") say("no scope", one);
  if (!root.lang) faults.push("no language");
  if (document.querySelectorAll("h1").length !== 1) faults.push("not one h1");
  let level = 1;
  for (const one of document.querySelectorAll("h1, h2, h3, h4")) {
    const next = +one.tagName[1];
    if (next > level + 1) say("a heading leaves out a level", one);
    level = next;
  }
  return [...new Set(faults)];
})()
