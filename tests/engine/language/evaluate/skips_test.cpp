// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// Programs as people keep them: in classes, among training scripts, with what other modules define around them.
#include "engine/language/evaluate/skips.h"

#include "tests/engine/language/language_testing.h"

namespace vitrine::engine {
namespace {

struct ScriptCase {
    std::string text;
    std::string expression;
    MaskFunction expected;
};

struct RefusedCase {
    std::string text;
    std::string expression;
    std::string says;
    int line;
};

void expectScripts(std::span<const ScriptCase> cases) {
    for (const ScriptCase& item : cases) {
        SCOPED_TRACE(item.text);
        expectMaskOf(item.text, item.expression, item.expected);
    }
}

void expectRefused(std::span<const RefusedCase> cases) {
    for (const RefusedCase& item : cases) {
        try {
            makeMod(item.text, item.expression, true);
            ADD_FAILURE() << "no error:\n" << item.text;
        } catch (const PyError& error) {
            EXPECT_NE(error.description().find(item.says), std::string::npos) << item.text << error.what();
            EXPECT_EQ(error.place().line, item.line) << item.text << error.what();
        }
    }
}

bool blockwise(int q, int k, int block) {
    return k < (q / block + 1) * block;
}

/// The frames of a video, of 8 tokens.
const MaskFunction kFrames = [](int, int, int q, int k) { return blockwise(q, k, 8); };

/// A model's file before and after what its mask does beside making it.
std::string videoModel(const std::string& decorator, const std::string& beside) {
    return "import torch\nimport torch.distributed as dist\n"
           "from torch.nn.attention.flex_attention import create_block_mask\n"
           "from someconfig.lib import ConfigBase, remember_arguments\n\n"
           "class VideoModel(ConfigBase):\n"
           "    ignored = ['patch', 'text']\n"
           "    norm = remember_arguments(64)\n" +
           decorator +
           "    def __init__(self, dim: SomeType = 64):\n"
           "        self.dim = dim\n"
           "    @staticmethod\n"
           "    def frame_mask(frames, per_frame):\n"
           "        total = frames * per_frame\n"
           "        ends = torch.zeros(total, dtype=torch.long)\n"
           "        for first in torch.arange(0, total, per_frame):\n"
           "            ends[first:first + per_frame] = first + per_frame\n"
           "        def mask(b, h, q_idx, kv_idx):\n"
           "            return kv_idx < ends[q_idx]\n"
           "        out = create_block_mask(mask, B=None, H=None, Q_LEN=total, KV_LEN=total)\n" +
           beside + "        return out\n";
}

TEST(LanguageSkips, ClassesOfModels) {
    const std::string choice = "VideoModel.frame_mask(3, 8)";
    const ScriptCase cases[] = {
        {videoModel("", ""), choice, kFrames},
        {videoModel("    @remember_arguments\n", ""), choice, kFrames},
        {videoModel("    @lib.remember(3)\n", "        if not dist.is_initialized() or dist.get_rank() == 0:\n"
                                              "            print('made a mask', out)\n"),
         choice, kFrames},
        {videoModel("", "        rank = dist.get_rank()\n        logger.info('%s', out)\n        dist.barrier()\n"
                        "        if rank == 0:\n            name = f'mask {rank}'\n            print(name)\n"),
         choice, kFrames},
        {videoModel("", "        with profiler.region('mask'):\n            print(out)\n"
                        "        assert dist.get_world_size() > 0\n"
                        "        if dist.get_world_size() > 64:\n            raise ValueError('too many')\n"),
         choice, kFrames},
        {videoModel("", "        for step in tracker.steps():\n            if step > 3:\n                break\n"
                        "            print(step)\n        @somewhere.traced\n        def unused(x):\n"
                        "            return x\n"),
         choice, kFrames},
    };
    expectScripts(cases);
}

TEST(LanguageSkips, MembersThatTheMaskDoesNotUse) {
    const ScriptCase cases[] = {
        {"import torch.nn as nn\n@torch.no_grad()\ndef near(w):\n    return lambda b, h, q, k: (q - k).abs() < w\n"
         "class Block(nn.Module):\n"
         "    act = ACTIVATIONS['gelu']\n"
         "    wide = torch.zeros(3)[7]\n"
         "    names = [unknown(i) for i in range(3)]\n"
         "    if has_flash:\n        kernel = flash.load()\n    else:\n        kernel = None\n"
         "    try:\n        import flash\n    except ImportError:\n        flash = None\n"
         "    async def serve(self):\n        await self.queue.get()\n"
         "    @property\n    def device(self):\n        return next(self.parameters()).device\n"
         "    @somewhere.checked(level=3)\n    def forward(self, x):\n        return self.attn(x)\n"
         "    @classmethod\n    def mask(cls, w=4):\n        return near(w)\n",
         "Block.mask()", within(4)},
        {"import torch.nn as nn\n"
         "class Attention(nn.Module):\n"
         "    def __init__(self, dim, window):\n"
         "        super().__init__()\n"
         "        self.q = nn.Linear(dim, dim)\n"
         "        self.k, self.v = nn.Linear(dim, dim), nn.Linear(dim, dim)\n"
         "        self.window = window\n"
         "    def mask(self, b, h, q, k):\n        return (q - k).abs() < self.window\n",
         "Attention(64, 3).mask", within(3)},
        {"class Sizes:\n    def __init__(self):\n        self._w = 1\n"
         "    @property\n    def w(self):\n        return self._w\n"
         "    @w.setter\n    def w(self, value):\n        self._w = value + 1\n"
         "sizes = Sizes()\nsizes.w = 4\ndef m(b, h, q, k): return (q - k).abs() < sizes.w\n",
         "m", within(5)},
        {"from functools import cached_property\nclass Grid:\n    side = 6\n"
         "    @cached_property\n    def width(self):\n        return self.side // 2\n"
         "    def mask(self, b, h, q, k): return (q - k).abs() < self.width\n",
         "Grid().mask", within(3)},
        {"class Base:\n    @unknown_decorator\n    def load(self): pass\n    @staticmethod\n"
         "    def causal(b, h, q, k): return q >= k\n"
         "class Child(Base, Mixin):\n    scale = mystery(1)\n",
         "Child.causal", [](int, int, int q, int k) { return q >= k; }},
        {"class Masks:\n    @staticmethod\n    @torch.jit.ignore\n    @torch.compile(dynamic=False)\n"
         "    def near(b, h, q, k): return (q - k).abs() < 2\n",
         "Masks.near", within(2)},
        {"from torch.compiler import disable\nclass Masks:\n    @staticmethod\n    @disable\n"
         "    def near(b, h, q, k): return (q - k).abs() < 2\n",
         "Masks.near", within(2)},
        {"def disable(fn):\n    return lambda b, h, q, k: ~fn(b, h, q, k)\n"
         "@disable\ndef far(b, h, q, k): return (q - k).abs() >= 5\n",
         "far", within(5)},
    };
    expectScripts(cases);
}

TEST(LanguageSkips, ScriptsAroundMasks) {
    const ScriptCase cases[] = {
        {"import argparse, os, wandb\nparser = argparse.ArgumentParser()\nparser.add_argument('--lr', type=float)\n"
         "args = parser.parse_args()\nwandb.init(project='x')\nlocal_rank = int(os.environ['LOCAL_RANK'])\n"
         "torch.cuda.set_device(local_rank)\nmodel = Model(args.dim).cuda()\n"
         "for step in range(args.steps):\n    loss = model(step)\n    loss.backward()\n    del loss\n"
         "WINDOW = 6\ndef m(b, h, q, k): return (q - k).abs() < WINDOW\n",
         "m", within(6)},
        {"import torch\nfrom accelerate import Accelerator\naccelerator = Accelerator()\n"
         "ids = torch.arange(24, device=accelerator.device) // 4\n"
         "def make(device=accelerator.device, n=4):\n    t = torch.zeros(24, device=device, dtype=torch.long) + n\n"
         "    return lambda b, h, q, k: (ids[q] == ids[k]) & (t[q] == n)\n",
         "make()", [](int, int, int q, int k) { return q / 4 == k / 4; }},
        {"def log(text):\n    if is_main_process():\n        print(text)\n"
         "def make(w):\n    log(f'window {w}')\n    if rank_zero():\n        log('made')\n"
         "    return lambda b, h, q, k: (q - k).abs() < w\n",
         "make(3)", within(3)},
        {"device = 'cuda' if torch.cuda.is_available() else 'cpu'\n"
         "ids = (torch.arange(24) // 6).to(device)\ndef m(b, h, q, k): return ids[q] == ids[k]\n",
         "m", [](int, int, int q, int k) { return q / 6 == k / 6; }},
        {"class Scope:\n    def __enter__(self):\n        global W\n        W = 7\n        return 2\n"
         "    def __exit__(self, *rest):\n        global W\n        W = W - 1\n"
         "W = 1\ndef make():\n    with Scope() as n:\n        pass\n    w = W + n\n"
         "    return lambda b, h, q, k: (q - k).abs() < w\n",
         "make()", within(8)},
        {"def make(w):\n    try:\n        from fast import build\n    except ImportError:\n        build = None\n"
         "    if build is not None:\n        w = build(w)\n    return lambda b, h, q, k: (q - k).abs() < w\n",
         "make(4)", within(4)},
    };
    expectScripts(cases);
}

TEST(LanguageSkips, ChangesByOtherNamesAreReached) {
    const ScriptCase cases[] = {
        {"t = torch.zeros(24)\nalias = t\nalias[5:] = 1\ndef m(b, h, q, k): return t[q] == t[k]\n", "m",
         [](int, int, int q, int k) { return (q < 5) == (k < 5); }},
        {"t = torch.zeros(24)\nrow = t.view(4, 6)[1]\nrow += 1\ndef m(b, h, q, k): return t[q] == t[k]\n", "m",
         [](int, int, int q, int k) { return (q / 6 == 1) == (k / 6 == 1); }},
        {"ws = [9, 4]\nfirst = ws.pop(0)\ndef m(b, h, q, k): return (q - k).abs() < ws[0]\n", "m", within(4)},
        {"ws = []\n_ = [ws.append(i) for i in (3, 5)]\ndef m(b, h, q, k): return (q - k).abs() < ws[1]\n", "m",
         within(5)},
        {"ws = []\ndef fill(to):\n    inner = to\n    inner.append(6)\n    return 1\ndone = fill(to=ws)\n"
         "def m(b, h, q, k): return (q - k).abs() < ws[0]\n",
         "m", within(6)},
        {"class C:\n    w = 2\ndef other(b, h, q, k): return (q - k).abs() < 5\n"
         "class V:\n    @staticmethod\n    def mask(b, h, q, k): return q >= k\nV.mask = other\n",
         "V.mask", within(5)},
        {"def other(b, h, q, k): return (q - k).abs() < 5\n"
         "class V:\n    @staticmethod\n    def mask(b, h, q, k): return q >= k\nsetattr(V, 'mask', other)\n",
         "V.mask", within(5)},
        {"W = 2\nclass Setter:\n    def set(self, n):\n        global W\n        W = n\ns = Setter()\ns.set(6)\n"
         "def m(b, h, q, k): return (q - k).abs() < W\n",
         "m", within(6)},
        {"REG = {}\nclass V:\n    REG['w'] = 3\ndef m(b, h, q, k): return (q - k).abs() < REG['w']\n", "m", within(3)},
        {"class V:\n    @staticmethod\n    def mask(b, h, q, k): return q >= k\n    def forward(self): pass\n"
         "V.forward = somewhere.patched(3)\n",
         "V.mask", [](int, int, int q, int k) { return q >= k; }},
    };
    expectScripts(cases);
}

const std::string kStatic = "class V:\n    @staticmethod\n    def mask(b, h, q, k): return q >= k\n";

TEST(LanguageSkips, WhatTheMaskNeedsStaysAnError) {
    const RefusedCase cases[] = {
        {"class V:\n    @staticmethod\n    @remember\n    def mask(b, h, q, k): return q >= k\n", "V.mask",
         "'remember'", 3},
        {"from lib import remember\nclass V:\n    @remember(3)\n    def mask(b, h, q, k): return q >= k\n", "V.mask",
         "'remember' of module 'lib'", 1},
        {"import lib\n@lib.cache\ndef m(b, h, q, k): return q >= k\n", "m", "'lib.cache'", 2},
        {"@registry.add\nclass V:\n    @staticmethod\n    def mask(b, h, q, k): return q >= k\n", "V.mask",
         "'registry'", 1},
        {"class V:\n    w = unknown(3)\n    @classmethod\n    def mask(cls):\n"
         "        return lambda b, h, q, k: q - k < cls.w\n",
         "V.mask()", "'unknown'", 2},
        {"class V:\n    @unknown\n    def __init__(self):\n        self.w = 3\n"
         "    def mask(self, b, h, q, k): return q >= k\n",
         "V().mask", "'unknown'", 2},
        {"def make(w):\n    if rank() == 0:\n        w = 9\n    return lambda b, h, q, k: q - k < w\n", "make(3)",
         "'rank'", 2},
        {"def make(w):\n    if rank() == 0:\n        return lambda b, h, q, k: q >= k\n"
         "    return lambda b, h, q, k: q - k < w\n",
         "make(3)", "'rank'", 2},
        {"def make():\n    t = torch.zeros(24)\n    u = t\n    if rank() == 0:\n        u[3] = 1\n"
         "    return lambda b, h, q, k: t[q] == t[k]\n",
         "make()", "'rank'", 4},
        {"def make():\n    t = torch.zeros(24)\n    fill(t)\n    return lambda b, h, q, k: t[q] == t[k]\n", "make()",
         "'fill'", 3},
        {"def reset():\n    global W\n    W = 5\nW = 3\ndef make():\n    if rank() == 0:\n        reset()\n"
         "    return lambda b, h, q, k: q - k < W\n",
         "make()", "'rank'", 6},
        {"W = 3\ndef make():\n    if rank() == 0:\n        global W\n        W = 5\n"
         "    return lambda b, h, q, k: q - k < W\n",
         "make()", "'rank'", 3},
        {"t = torch.zeros(24)\ntorch.nn.init.normal_(t)\ndef m(b, h, q, k): return t[q] == t[k]\n", "m",
         "torch.nn.init", 2},
        {"from lib import fill\nt = torch.zeros(24)\nfill(t)\ndef m(b, h, q, k): return t[q] == t[k]\n", "m", "'fill'",
         1},
        {"t = torch.zeros(24)\nalias = t\nalias[unknown(3)] = 1\ndef m(b, h, q, k): return t[q] == t[k]\n", "m",
         "'unknown'", 3},
        {"W = 3\ndef set_w(n):\n    global W\n    W = n\nset_w(unknown())\ndef m(b, h, q, k): return q - k < W\n", "m",
         "'unknown'", 5},
        {"W = 3\nclass S:\n    def set(self, n):\n        global W\n        W = n\nS().set(unknown())\n"
         "def m(b, h, q, k): return q - k < W\n",
         "m", "'unknown'", 6},
        {kStatic + "V.mask = lib_patched\n", "V.mask", "'lib_patched'", 4},
        {kStatic + "setattr(V, 'mask', lib_patched)\n", "V.mask", "'lib_patched'", 4},
        {"W = 3\ndel W\ndef m(b, h, q, k): return q - k < W\n", "m", "'W' is not defined", 3},
        {"W = 3\nexec('W = 5')\ndef m(b, h, q, k): return q - k < W\n", "m", "'exec'", 2},
        {"W = 3\nglobals()['W'] = 5\ndef m(b, h, q, k): return q - k < W\n", "m", "'globals'", 2},
        {"W = 3\ndef patch():\n    globals()['W'] = 5\npatch()\ndef m(b, h, q, k): return q - k < W\n", "m",
         "'globals'", 3},
        {"class V:\n    w = 3\n    if patched:\n        w = 5\n    @classmethod\n    def mask(cls):\n"
         "        return lambda b, h, q, k: q - k < cls.w\n",
         "V.mask()", "'patched'", 3},
        {"def make(w):\n    with lib.patched(w):\n        return helper(w)\n", "make(3)", "'helper'", 3},
        {"def make(w=unknown()):\n    return lambda b, h, q, k: q - k < w\n", "make()", "'unknown'", 1},
    };
    expectRefused(cases);
}

TEST(LanguageSkips, StayWithinTheBounds) {
    const std::string failing = "def make():\n    for i in range(10 ** 9):\n        x = unknown(i)\n"
                                "    return lambda b, h, q, k: q >= k\n";
    EXPECT_THROW(makeMod(failing, "make()", true), PyError);
    const std::string forking = "def f(x):\n    a = f(x)\n    b = unknown(f(x))\n    return unknown(a)\n"
                                "def make():\n    y = f(1)\n    return lambda b, h, q, k: q >= k\n";
    EXPECT_THROW(makeMod(forking, "make()", true), PyError);
}

TEST(LanguageSkips, NotesNameWhatWasPassedOver) {
    const ChosenProgram program =
        makeMod(videoModel("", "        rank = dist.get_rank()\n"), "VideoModel.frame_mask(3, 8)", true);
    EXPECT_TRUE(std::any_of(program.notes.begin(), program.notes.end(),
                            [](const std::string& note) { return note.find("get_rank") != std::string::npos; }));
}

} // namespace
} // namespace vitrine::engine
