"""Of the words of three letters or more that a trained gpt writes, how many stand in the text it learned from.
Exits with 1 when fewer than half do.
usage: words.py TAPEDECK RUN TEXT_FILE [LENGTH=2000]"""
import pathlib
import re
import subprocess
import sys


def words(text):
    return re.findall(r"[a-z]{3,}", text.lower())


program, run, source = sys.argv[1:4]
length = sys.argv[4] if len(sys.argv) > 4 else "2000"
written = subprocess.run([program, "generate", run, "--length", length], check=True, capture_output=True, text=True).stdout
text = pathlib.Path(source).read_text(encoding="utf-8")
known = set(words(text[: len(text) * 9 // 10]))  # what validates is not learned from
found = [word in known for word in words(written)]
share = sum(found) / max(len(found), 1)
print(f"{sum(found)} of {len(found)} words of three letters or more stand in the training text: {100 * share:.0f} %")
sys.exit(not (found and share >= 0.5))
