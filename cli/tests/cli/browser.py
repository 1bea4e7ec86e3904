"""Shows a page in headless Chromium, and prints what is in it as JSON: browser.py CHROMIUM PROFILE PAGE [OTHER...]

- tables: the text of each cell of each table, by its name.
- tabs: what has the focus after each press of the Tab key, once for each element that takes it; nothing is folded.
- schemes: of light and dark, the colours of what is written and drawn, as the browser computes them, each with the
  background on which it is.
- console: what all these pages made the browser say.
- outside: what is written in the pictures of all these pages, and leaves them or lies over something else.

It speaks the browser's own protocol over two pipes, because headless Chromium opens no port that others could reach.
"""
import json
import os
import subprocess
import sys

TABLES = """Object.fromEntries([...document.querySelectorAll('table')].map(table => [table.id,
    [...table.tBodies[0].rows].map(row => [...row.cells].map(cell => cell.textContent))]))"""

# What has the focus: where it stands among all elements, its name and its text, and whether a frame is drawn around it.
FOCUS = """(() => {
    const at = document.activeElement, style = getComputedStyle(at);
    return [[...document.querySelectorAll('*')].indexOf(at), at.localName, at.textContent.slice(0, 30),
        style.outlineStyle != 'none' && parseFloat(style.outlineWidth) >= 2];
})()"""
FOCUSABLE = "document.querySelectorAll('a[href],summary,[tabindex=\"0\"]').length"

# Each text with its colour, each drawing with its fill or its stroke, and the nearest background that is not clear.
COLOURS = """(() => {
    const under = at => {
        for (; at; at = at.parentElement) {
            const back = getComputedStyle(at).backgroundColor;
            if (!back.startsWith('rgba(0, 0, 0, 0')) return back;
        }
        return 'rgb(255, 255, 255)';
    };
    const found = new Set(), add = (kind, over, at) => found.add(JSON.stringify([kind, over, under(at)]));
    for (const at of document.querySelectorAll('body *')) {
        const style = getComputedStyle(at), svg = at instanceof SVGElement;
        const text = [...at.childNodes].some(child => child.nodeType == 3 && child.data.trim());
        if (at.localName == 'title' || at.localName == 'desc') continue;
        if (svg && at.localName == 'text') add('text', style.fill, at);
        else if (svg && at.localName == 'line' && at.classList.contains('grid')) add('grid', style.stroke, at);
        else if (svg && ['rect', 'circle', 'path', 'polyline', 'polygon', 'line'].includes(at.localName)) {
            const drawn = style.stroke != 'none' ? style.stroke : style.fill;
            if (drawn != 'none') add('drawing', drawn, at);
        } else if (!svg && text) add('text', style.color, at);
    }
    return [...found].map(JSON.parse);
})()"""


# What is written in each picture, in units of the picture. How high it stands is by its size, whatever the font.
WRITTEN = """const written = [...document.querySelectorAll('svg')].map(picture => [picture.viewBox.baseVal,
    [...picture.querySelectorAll('text')].map(at => {
        const {x, width} = at.getBBox(), size = parseFloat(getComputedStyle(at).fontSize);
        return {text: at.textContent, x, end: x + width, y: +at.getAttribute('y'), size};
    })]);"""
OUTSIDE = "{" + WRITTEN + """written.flatMap(([{width, height}, texts]) => texts.filter(
    ({x, end, y, size}) => x < 0 || end > width || y < size || y > height - size / 4).map(({text}) => text))}"""
OVER = "{" + WRITTEN + """written.flatMap(([, texts]) => texts.flatMap((a, at) => texts.slice(at + 1).filter(
    b => a.x < b.end && b.x < a.end && Math.abs(a.y - b.y) < a.size).map(b => [a.text, b.text])))}"""


class Browser:
    def __init__(self, program, profile):
        there, to_browser = os.pipe()
        from_browser, here = os.pipe()

        def pipes():
            # The protocol reads descriptor 3 and writes descriptor 4.
            ends = os.dup(there), os.dup(here)
            os.dup2(ends[0], 3)
            os.dup2(ends[1], 4)

        self.child = subprocess.Popen(
            [program, "--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe",
             f"--user-data-dir={profile}", "about:blank"],
            preexec_fn=pipes, close_fds=False, stderr=subprocess.DEVNULL)
        os.close(there)
        os.close(here)
        self.to, self.back = to_browser, os.fdopen(from_browser, "rb")
        self.number, self.session, self.events, self.rest = 0, None, [], b""

    def message(self):
        while b"\0" not in self.rest:
            more = self.back.read1(1 << 16)
            if not more:
                sys.exit("the browser ended")
            self.rest += more
        message, self.rest = self.rest.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, **parameters):
        self.number += 1
        call = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            call["sessionId"] = self.session
        os.write(self.to, json.dumps(call).encode() + b"\0")
        while True:
            message = self.message()
            if message.get("id") == self.number:
                if "error" in message:
                    sys.exit(f"{method}: {message['error']}")
                return message["result"]
            self.events.append(message)

    def show(self, page):
        before = len(self.events)
        self.call("Page.navigate", url="file://" + page)
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events[before:]):
            self.events.append(self.message())

    def value(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in result:
            sys.exit(str(result["exceptionDetails"]))
        return result["result"].get("value")


def main():
    program, profile, page, *others = sys.argv[1:]
    browser = Browser(program, profile)
    target = browser.call("Target.createTarget", url="about:blank")["targetId"]
    browser.session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
    for domain in ("Page", "Runtime", "Log"):
        browser.call(domain + ".enable")
    outside = []
    for at in others + [page]:
        browser.show(at)
        outside += browser.value(OUTSIDE) + browser.value(OVER)
    browser.value("document.querySelectorAll('details').forEach(details => details.open = true)")
    tabs, count = [], browser.value(FOCUSABLE)
    for _ in range(count):
        for kind in ("keyDown", "keyUp"):
            browser.call("Input.dispatchKeyEvent", type=kind, key="Tab", code="Tab", windowsVirtualKeyCode=9)
        tabs.append(browser.value(FOCUS))
    schemes = {}
    for scheme in ("light", "dark"):
        browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        schemes[scheme] = browser.value(COLOURS)
    said = [event for event in browser.events
            if event.get("method") in ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded")]
    print(json.dumps({"tables": browser.value(TABLES), "tabs": tabs, "schemes": schemes, "console": said,
                      "outside": outside}))
    browser.session = None
    browser.call("Browser.close")
    browser.child.wait()


main()
