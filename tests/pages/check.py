#!/usr/bin/env python3
"""Opens pages in headless Chromium, 1280 and 390 pixels wide, light and dark, and counts text that touches text, leaves
its picture or the screen, what is loaded from elsewhere, and lines on the console. Fails above 0.

    check.py [--pictures FOLDER] PAGE...
"""
import html, json, os, re, shutil, subprocess, sys, tempfile

WIDTHS = (1280, 390)
BROWSER = next((b for b in ("chromium", "chromium-browser", "google-chrome") if shutil.which(b)), None)

# Runs in the page that holds the two frames. A text's boxes are those of its lines.
SCRIPT = r"""
addEventListener('load', () => {
  const report = [];
  for (const frame of document.querySelectorAll('iframe')) {
    const page = frame.contentDocument, width = frame.clientWidth, say = text => report.push(width + ' px: ' + text);
    for (const fold of page.querySelectorAll('details')) fold.open = true;
    frame.style.height = page.documentElement.scrollHeight + 'px';
    const dark = frame.contentWindow.matchMedia('(prefers-color-scheme: dark)').matches;
    if (dark !== SCHEME_IS_DARK) say('the page does not see the colour scheme');
    if (frame.contentWindow.innerWidth !== width) say('the page is ' + frame.contentWindow.innerWidth + ' px wide');
    if (page.documentElement.scrollWidth > width) say('scrolls sideways: ' + page.documentElement.scrollWidth);
    for (const entry of frame.contentWindow.performance.getEntriesByType('resource')) say('loads ' + entry.name);
    const boxes = [], walker = page.createTreeWalker(page.body, NodeFilter.SHOW_TEXT);
    for (let node; (node = walker.nextNode());) {
      const parent = node.parentElement;
      if (!node.data.trim() || ['TITLE', 'STYLE', 'SCRIPT'].includes(parent.tagName.toUpperCase())) continue;
      const range = page.createRange();
      range.selectNodeContents(node);
      const picture = parent.closest('svg');
      const edge = picture ? picture.getBoundingClientRect() : {left: 0, right: width, top: 0, bottom: Infinity};
      for (const r of range.getClientRects()) {
        if (r.width < 0.5 || r.height < 0.5) continue;
        const text = node.data.trim().slice(0, 60);
        if (r.left < edge.left - 1 || r.right > edge.right + 1 || r.top < edge.top - 1 || r.bottom > edge.bottom + 1)
          say('clipped: "' + text + '"');
        boxes.push({r, text, node});
      }
    }
    boxes.sort((a, b) => a.r.top - b.r.top);
    for (let i = 0; i < boxes.length; ++i)
      for (let j = i + 1; j < boxes.length && boxes[j].r.top < boxes[i].r.bottom; ++j) {
        const a = boxes[i].r, b = boxes[j].r;
        if (boxes[i].node === boxes[j].node) continue;
        const across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
        const down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
        if (across > 1 && down > 1) say('touch: "' + boxes[i].text + '" and "' + boxes[j].text + '"');
      }
    if (boxes.length < 5) say('only ' + boxes.length + ' texts');
    report.push('texts ' + boxes.length + ' height ' + page.documentElement.scrollHeight);
  }
  const out = document.createElement('pre');
  out.id = 'findings';
  out.textContent = 'FINDINGS' + JSON.stringify(report) + 'END';
  document.body.appendChild(out);
});
"""


def wrapper(page, dark, widths):
    frames = "".join(f'<iframe width="{w}" height="900" style="border:0" srcdoc="{html.escape(page, True)}"></iframe>'
                     for w in widths)
    script = SCRIPT.replace("SCHEME_IS_DARK", "true" if dark else "false")
    return ('<!DOCTYPE html><meta charset="utf-8"><meta name="color-scheme" content="light dark">'
            '<link rel="icon" href="data:,"><style>body{margin:0}#findings{display:none}iframe{display:block}</style>'
            f"<body><script>{script}</script>{frames}</body>")


def browse(folder, text, dark, *options):
    path = os.path.join(folder, "page.html")
    with open(path, "w") as out:
        out.write(text)
    command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run",
               "--disable-extensions", "--enable-logging=stderr", f"--user-data-dir={folder}/profile",
               f"--blink-settings=preferredColorScheme={0 if dark else 1}", *options, "file://" + path]
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120)


def check(folder, name, page, pictures):
    troubles, texts = [], 0
    if re.search(r"<script|javascript:|\son[a-z]+=", page):
        troubles.append("has a script")
    for dark in (False, True):
        scheme = "dark" if dark else "light"
        result = browse(folder, wrapper(page, dark, WIDTHS), dark, "--window-size=1400,900", "--dump-dom")
        found = re.search(r"FINDINGS(\[.*\])END", result.stdout, re.S)
        if not found:
            troubles.append(f"{scheme}: the browser shows nothing: {result.stderr[-300:]}")
            continue
        heights = []
        for finding in json.loads(html.unescape(found[1])):
            counted = re.fullmatch(r"texts (\d+) height (\d+)", finding)
            if counted:
                texts += int(counted[1])
                heights.append(int(counted[2]))
            else:
                troubles.append(f"{scheme}, {finding}")
        troubles += [f"{scheme}, console: {line}" for line in result.stderr.splitlines() if "CONSOLE" in line]
        if pictures:
            for width, height in zip(WIDTHS, heights):
                browse(folder, wrapper(page, dark, (width,)), dark, f"--window-size={max(width, 500)},{min(height, 12000)}",
                       f"--screenshot={os.path.abspath(pictures)}/{name}-{width}-{scheme}.png")
    return troubles, texts


def main():
    words = sys.argv[1:]
    pictures = None
    if words[:1] == ["--pictures"]:
        pictures, words = words[1], words[2:]
        os.makedirs(pictures, exist_ok=True)
    if not BROWSER:
        sys.exit("check.py: no Chromium here; `make check-pages` installs it")
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        # A page that is wrong must be seen to be wrong, or the check proves nothing.
        wrong = ('<!DOCTYPE html><meta name="color-scheme" content="light dark"><body><svg viewBox="0 0 100 40" width="100">'
                 '<text x="5" y="20">one</text><text x="8" y="22">two</text><text x="80" y="20">clipped</text></svg>'
                 '<p>a</p><p>b</p><p>c</p><script>console.error("x")</script>')
        seen = " ".join(check(folder, "wrong", wrong, None)[0])
        for fault in ("touch", "clipped", "console", "script"):
            if fault not in seen:
                sys.exit(f"check.py: does not see a page's fault: {fault}; it saw: {seen}")
        for path in words:
            with open(path) as page:
                troubles, texts = check(folder, os.path.basename(path).rsplit(".", 1)[0], page.read(), pictures)
            print(f"{path}: {texts} texts seen four ways, {len(troubles)} troubles", flush=True)
            for trouble in troubles[:20]:
                print("  " + trouble)
            bad += len(troubles)
    sys.exit(1 if bad else 0)


main()
