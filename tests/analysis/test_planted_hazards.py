"""One planted fault of each kind is found, with both instructions and what is missing; the mended code is silent."""

from __future__ import annotations

import pytest

from bhemu.analysis import hazards
from bhemu.analysis.hazard import NOTE
from bhemu.recording import log as column
from bhemu.recording.log import STORE, Note
from tests.analysis.logs import certain, log_of

CFG_THCON = "STALLWAIT stall_res=0x80, wait_res=1"
THCON_THCON = "STALLWAIT stall_res=0x20, wait_res=1"
TDMA_THCON = "STALLWAIT stall_res=1, wait_res=1"

FAULTS = {
    # name: (thread, faulty code, mended code, part of `missing`, part of `rule`)
    "SETDMAREG to WRCFG": (
        2,
        "SETDMAREG 0x20, 24\nWRCFG 12, 0, 69",
        f"SETDMAREG 0x20, 24\n{CFG_THCON}\nWRCFG 12, 0, 69",
        "STALLWAIT(STALL_CFG, THCON)",
        "I.11",
    ),
    "SETDMAREG of one of four to a 128-bit WRCFG": (
        2,
        "SETDMAREG 0x20, 31\nWRCFG 12, 1, 68",
        "SETDMAREG 0x20, 31\nDMANOP\nWRCFG 12, 1, 68",
        "STALLWAIT(STALL_CFG, THCON)",
        "I.11",
    ),
    "ADDDMAREG to WRCFG": (
        0,
        "ADDDMAREG OpBisConst=1, ResultRegIndex=5, OpBRegIndex=1, OpARegIndex=4\nWRCFG 5, 0, 76",
        f"ADDDMAREG OpBisConst=1, ResultRegIndex=5, OpBRegIndex=1, OpARegIndex=4\n{CFG_THCON}\nWRCFG 5, 0, 76",
        "STALLWAIT(STALL_CFG, THCON)",
        "I.11",
    ),
    "LOADIND to WRCFG, a gap is not enough": (
        0,
        "LOADIND 1, 10, 0, 8, 4\nDMANOP\nDMANOP\nDMANOP\nWRCFG 8, 0, 76",
        f"LOADIND 1, 10, 0, 8, 4\n{CFG_THCON}\nWRCFG 8, 0, 76",
        "STALLWAIT(STALL_CFG, THCON)",
        "003.2.6f",
    ),
    "LOADIND to arithmetic": (
        0,
        "LOADIND 1, 10, 0, 8, 4\nADDDMAREG OpBisConst=1, ResultRegIndex=5, OpBRegIndex=1, OpARegIndex=8",
        f"LOADIND 1, 10, 0, 8, 4\n{THCON_THCON}\n"
        "ADDDMAREG OpBisConst=1, ResultRegIndex=5, OpBRegIndex=1, OpARegIndex=8",
        "STALLWAIT(STALL_THCON, THCON)",
        "003.2.6f",
    ),
    "LOADIND of 16 bytes to its fourth register": (
        0,
        "LOADIND 0, 10, 0, 8, 4\nSTOREIND MemHierSel=1, SizeSel=0, RegSizeSel=1, DataRegIndex=11, AddrRegIndex=4",
        f"LOADIND 0, 10, 0, 8, 4\n{TDMA_THCON}\n"
        "STOREIND MemHierSel=1, SizeSel=0, RegSizeSel=1, DataRegIndex=11, AddrRegIndex=4",
        "STALLWAIT(STALL_THCON, THCON)",
        "003.2.6f",
    ),
    "LOADIND whose register is overwritten": (
        0,
        "LOADIND 1, 10, 0, 8, 4\nSETDMAREG 0, 16",
        f"LOADIND 1, 10, 0, 8, 4\n{THCON_THCON}\nSETDMAREG 0, 16",
        "STALLWAIT(STALL_THCON, THCON)",
        "003.2.6f",
    ),
    "FLUSHDMA orders memory requests": (
        0,
        "LOADIND 1, 10, 0, 8, 4\nWRCFG 8, 0, 76",
        "LOADIND 1, 10, 0, 8, 4\nFLUSHDMA 1\nWRCFG 8, 0, 76",
        "STALLWAIT(STALL_CFG, THCON)",
        "003.2.6f",
    ),
    "RDCFG to WRCFG": (
        0,
        "RDCFG 8, 76\nWRCFG 8, 0, 77",
        "RDCFG 8, 76\nSTALLWAIT stall_res=0x80, wait_res=0x1000\nWRCFG 8, 0, 77",
        "STALLWAIT(STALL_CFG, CFGEXU)",
        "003.4.2b",
    ),
    "RDCFG to a store": (
        0,
        "RDCFG 8, 76\nSTOREREG 8, 0x4400",
        "RDCFG 8, 76\nSTALLWAIT stall_res=0x20, wait_res=0x1000\nSTOREREG 8, 0x4400",
        "STALLWAIT(STALL_THCON, CFGEXU)",
        "003.4.2b",
    ),
    "one slot after WRCFG": (
        2,
        "WRCFG 12, 0, 69\nPACR Last=1",
        "WRCFG 12, 0, 69\nNOP\nPACR Last=1",
        "NOP",
        "003.4.1c",
    ),
    "one slot after WRCFG, unpacker": (
        0,
        "WRCFG 12, 0, 124\nUNPACR Unpack_block_selection=1, Last=1",
        "WRCFG 12, 0, 124\nNOP\nUNPACR Unpack_block_selection=1, Last=1",
        "NOP",
        "003.4.1c",
    ),
    "one slot after WRCFG, matrix unit": (1, "WRCFG 12, 0, 1\nMVMUL", "WRCFG 12, 0, 1\nNOP\nMVMUL", "NOP", "003.4.1c"),
    "bank selector": (
        1,
        "SETC16 0, 1\nWRCFG 12, 0, 1",
        "SETC16 0, 1\nNOP\nNOP\nWRCFG 12, 0, 1",
        "2 NOPs",
        "003.4.3b",
    ),
    "bank selector, matrix unit": (
        1,
        "SETC16 0, 1\nNOP\nMVMUL",
        "SETC16 0, 1\nNOP\nNOP\nMVMUL",
        "2 NOPs",
        "003.4.3b",
    ),
    "STREAMWRCFG": (
        0,
        "STREAMWRCFG 0, 4, 76\nNOP\nNOP\nRDCFG 4, 76",
        "STREAMWRCFG 0, 4, 76\nSTALLWAIT stall_res=0x80, wait_res=0x1000\nRDCFG 4, 76",
        "STALLWAIT(STALL_CFG, CFGEXU)",
        "STREAMWRCFG",
    ),
    "packer's words while it packs": (
        2,
        "PACR Last=1\nSETDMAREG 0, 24\nDMANOP\nWRCFG 12, 0, 69",
        "PACR Last=1\nSETDMAREG 0, 24\nSTALLWAIT stall_res=0x80, wait_res=9\nWRCFG 12, 0, 69",
        "STALLWAIT(STALL_CFG, PACK)",
        "002.17.1d",
    ),
    "packer's state while it packs": (
        2,
        "PACR Last=1\nSETDMAREG form=signal, ResultSize=1, InputSource=0, RegIndex16b=8",
        "PACR Last=1\nSTALLWAIT stall_res=0x20, wait_res=8\n"
        "SETDMAREG form=signal, ResultSize=1, InputSource=0, RegIndex16b=8",
        "STALLWAIT(STALL_THCON, PACK)",
        "003.2.1d",
    ),
    "Dst cleared while the packer reads": (
        2,
        "PACR Last=1\nZEROACC clear_mode=2",
        "PACR Last=1\nSTALLWAIT stall_res=0x40, wait_res=8\nZEROACC clear_mode=2",
        "STALLWAIT(STALL_MATH, PACK)",
        "C3",
    ),
    "SFPLOAD behind the matrix unit": (
        1,
        "MVMUL\nSFPLOAD 0, 0, 3, 0",
        "MVMUL\nSTALLWAIT stall_res=0x100, wait_res=0x10\nSFPLOAD 0, 0, 3, 0",
        "STALLWAIT(STALL_SFPU, MATH)",
        "Y13",
    ),
    "SFPLOAD with two instructions between": (
        1,
        "MVMUL\nNOP\nNOP\nSFPLOAD 0, 0, 3, 0",
        "MVMUL\nNOP\nNOP\nNOP\nSFPLOAD 0, 0, 3, 0",
        "3 unrelated instructions",
        "Y13",
    ),
    "SFPLOADMACRO behind the matrix unit": (
        1,
        "MVMUL\nSFPLOADMACRO 0, 0, 3, 0",
        "MVMUL\nNOP\nNOP\nNOP\nSFPLOADMACRO 0, 0, 3, 0",
        "STALLWAIT(STALL_SFPU, MATH)",
        "Y13",
    ),
    "MOVD2A without a bank": (
        1,
        "MOVD2A instr_mod=2",
        "STALLWAIT stall_res=0x40, wait_res=0x80\nMOVD2A instr_mod=2",
        "STALLWAIT(STALL_MATH, SRCA_VLD)",
        "F30",
    ),
    "MOVD2B without a bank": (1, "MOVD2B instr_mod=2", "MVMUL\nMOVD2B instr_mod=2", "SRCB_VLD", "F30"),
    "bank given back before a move": (
        1,
        "MVMUL clear_dvalid=1\nMOVD2A instr_mod=2",
        "MVMUL clear_dvalid=2\nMOVD2A instr_mod=2",
        "SRCA_VLD",
        "F30",
    ),
    "MOVB2D to low halves behind the matrix unit's write of the same 32-bit rows": (
        1,
        "MOVB2D movb2d_instr_mod=2, dest_32b_lo=1, dst=64\nSFPLOAD 0, 0, 3, 128",
        "MOVB2D movb2d_instr_mod=2, dest_32b_lo=1, dst=64\nSFPLOAD 0, 0, 3, 0",
        "STALLWAIT(STALL_SFPU, MATH)",
        "Y13",
    ),
    "SFPLOAD of 16-bit rows (Mod0 14) behind the matrix unit": (
        1,
        "MVMUL dst=64\nSFPLOAD 0, 14, 3, 64",
        "MVMUL dst=128\nSFPLOAD 0, 14, 3, 64",
        "STALLWAIT(STALL_SFPU, MATH)",
        "Y13",
    ),
    "ZEROSRC of the matrix unit's bank without a bank": (
        1,
        "ZEROSRC write_mode=1, src_mask=1",
        "STALLWAIT stall_res=0x40, wait_res=0x80\nZEROSRC write_mode=1, src_mask=1",
        "STALLWAIT(STALL_MATH, SRCA_VLD)",
        "F30",
    ),
    "one slot after WRCFG, override of the packer's intermediate format": (
        2,
        "WRCFG 12, 0, 0\nPACR Last=1",
        "WRCFG 12, 0, 0\nNOP\nPACR Last=1",
        "NOP",
        "003.4.1c",
    ),
    "one slot after WRCFG, mover": (0, "WRCFG 12, 0, 88\nXMOV", "WRCFG 12, 0, 88\nNOP\nXMOV", "NOP", "003.4.1c"),
    "one slot after WRCFG, tile header": (
        2,
        "WRCFG 12, 0, 70\nSETDMAREG form=signal, ResultSize=2, InputSource=2, RegIndex16b=8",
        "WRCFG 12, 0, 70\nNOP\nSETDMAREG form=signal, ResultSize=2, InputSource=2, RegIndex16b=8",
        "NOP",
        "003.4.1c",
    ),
    "Y14 SFPSHFT2's register in the immediate": (
        1,
        "SFPMAD 1, 2, 3, 4, 0\nSFPSHFT2 4, 1, 5, 5",
        "SFPMAD 1, 2, 3, 4, 0\nSFPNOP\nSFPSHFT2 4, 1, 5, 5",
        "SFPNOP",
        "Y14",
    ),
    "Y14 SFPSHFT2's rows of registers": (
        1,
        "SFPMAD 4, 5, 6, 2, 0\nSFPSHFT2 0, 7, 5, 2",
        "SFPMAD 4, 5, 6, 2, 0\nSFPNOP\nSFPSHFT2 0, 7, 5, 2",
        "SFPNOP",
        "Y14",
    ),
    "Y14 index of a destination, written through LReg 7": (
        1,
        "SFPMAD 1, 2, 3, 0, 8\nSFPIADD 0, 1, 5, 0",
        "SFPMAD 1, 2, 3, 0, 8\nSFPNOP\nSFPIADD 0, 1, 5, 0",
        "SFPNOP",
        "Y14",
    ),
    "Y14 SFPCONFIG of a template takes LReg 0 with an immediate too": (
        1,
        "SFPMUL 1, 2, 9, 0, 0\nSFPCONFIG 0, 1, 1",
        "SFPMUL 1, 2, 9, 0, 0\nSFPNOP\nSFPCONFIG 0, 1, 1",
        "SFPNOP",
        "Y14",
    ),
    "Y14 SFPIADD": (
        1,
        "SFPMAD 1, 2, 3, 4, 0\nSFPIADD 0, 1, 4, 0",
        "SFPMAD 1, 2, 3, 4, 0\nSFPNOP\nSFPIADD 0, 1, 4, 0",
        "SFPNOP",
        "Y14",
    ),
    "Y14 SFPSWAP": (
        1,
        "SFPADD 10, 1, 2, 3, 0\nSFPSWAP 0, 3, 4, 1",
        "SFPADD 10, 1, 2, 3, 0\nSFPNOP\nSFPSWAP 0, 3, 4, 1",
        "SFPNOP",
        "Y14",
    ),
    "Y14 SFPCONFIG": (
        1,
        "SFPMUL 1, 2, 9, 0, 0\nSFPCONFIG 0, 11, 0",
        "SFPMUL 1, 2, 9, 0, 0\nSFPNOP\nSFPCONFIG 0, 11, 0",
        "SFPNOP",
        "Y14",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_found_and_its_mended_form_is_silent(name: str) -> None:
    thread, faulty, mended, missing, rule = FAULTS[name]
    found = certain(hazards(log_of(*[(thread, line) for line in faulty.splitlines()])))
    assert [h for h in found if missing in h.missing and rule in h.rule], found
    last = faulty.splitlines()[-1].split()[0]
    assert found[0].consumer.text.split()[0] == last
    assert found[0].consumer.line == len(faulty.splitlines())
    assert certain(hazards(log_of(*[(thread, line) for line in mended.splitlines()]))) == []


def test_the_report_names_both_instructions_with_their_lines() -> None:
    (found,) = hazards(log_of((2, "SETDMAREG 0x20, 24"), (2, "WRCFG 12, 0, 69")))
    assert found.producer.line == 1
    assert found.producer.text.startswith("SETDMAREG")
    assert found.consumer.line == 2
    assert "missing: STALLWAIT(STALL_CFG, THCON)" in str(found)
    assert "line 2, thread 2, pack" in str(found)


def test_a_wait_with_the_wrong_condition_or_block_does_not_count() -> None:
    load = (0, "LOADIND 1, 10, 0, 8, 4")
    use = (0, "WRCFG 8, 0, 76")
    for wait in ("STALLWAIT stall_res=0x80, wait_res=8", "STALLWAIT stall_res=0x40, wait_res=1"):
        assert certain(hazards(log_of(load, (0, wait), use)))


def test_a_wait_covers_only_what_was_issued_before_it() -> None:
    assert certain(hazards(log_of((0, CFG_THCON), (0, "LOADIND 1, 10, 0, 8, 4"), (0, "WRCFG 8, 0, 76"))))


def test_a_wait_that_another_word_has_passed_covers_words_of_other_units_too() -> None:
    lines = ["LOADIND 1, 10, 0, 8, 4", CFG_THCON, "SETC16 1, 0", "STOREREG 8, 0x4400"]
    assert certain(hazards(log_of(*[(0, line) for line in lines]))) == []


def test_zero_masks_mean_block_b6_and_conditions_c0_to_c3() -> None:
    assert certain(hazards(log_of((2, "PACR Last=1"), (2, "STALLWAIT 0, 0"), (2, "ZEROACC clear_mode=2")))) == []


def test_arithmetic_right_after_rdcfg_is_a_note() -> None:
    add = "ADDDMAREG OpBisConst=0, ResultRegIndex=12, OpBRegIndex=12, OpARegIndex=18"
    found = hazards(log_of((0, "RDCFG 12, 124"), (0, add)))
    assert [h.severity for h in found] == [NOTE]


def test_a_wrcfg_of_another_context_or_unit_needs_no_gap() -> None:
    assert hazards(log_of((0, "WRCFG 12, 0, 125"), (0, "UNPACR Unpack_block_selection=1, Last=1"))) == []
    assert hazards(log_of((0, "WRCFG 12, 0, 124"), (0, "UNPACR Unpack_block_selection=0, Last=1"))) == []
    context1 = {column.UNPACK_DEST: 1 << 32}
    assert certain(
        hazards(log_of((0, "WRCFG 12, 0, 125"), (0, "UNPACR Unpack_block_selection=1, OvrdThreadId=1", context1)))
    )


def test_a_config_word_of_the_other_bank_needs_no_gap() -> None:
    bank1 = {column.BANK: 1}
    assert hazards(log_of((1, "WRCFG 12, 0, 1", bank1), (1, "MVMUL"))) == []


def test_sfpload_of_another_block_needs_no_gap() -> None:
    assert hazards(log_of((1, "MVMUL dst=8"), (1, "SFPLOAD 0, 0, 3, 0"))) == []


def test_a_store_of_the_core_needs_condition_c10() -> None:
    store = Note(0, 3, 0, STORE, (76,), 7)
    pushed = {column.PUSH: 4}
    wait = (0, "STALLWAIT stall_res=8, wait_res=0x400", pushed)
    unpack = (0, "UNPACR Last=1", {column.PUSH: 5})
    (found,) = certain(hazards(log_of(store, unpack)))
    assert found.missing == "STALLWAIT(STALL_UNPACK, TRISC_CFG)"
    assert found.producer.line == 7
    assert hazards(log_of(store, wait, unpack)) == []
    # An instruction that was pushed before the store may have meant the old value.
    (found,) = certain(hazards(log_of(store, (0, "UNPACR Last=1", {column.PUSH: 3}))))
    assert "semaphore" in found.missing
    # A wait that was pushed before the store does not cover it.
    assert certain(hazards(log_of(wait, Note(0, 4, 0, STORE, (76,), 7), unpack)))


def test_operands_that_an_immediate_replaces_are_not_read() -> None:
    for after in ("SFPIADD 5, 1, 4, 1", "SFPSHFT 5, 1, 4, 5"):
        assert hazards(log_of((1, "SFPMAD 1, 2, 3, 4, 0"), (1, after))) == []


def test_vector_arithmetic_does_not_look_at_the_formats_of_the_matrix_unit() -> None:
    assert hazards(log_of((1, "WRCFG 12, 0, 1"), (1, "SFPMAD 1, 2, 3, 4, 0"))) == []


# --- between threads --------------------------------------------------------------------------------------------------

INIT = (1, "SEMINIT max_value=2, init_value=0, sem_sel=2")
POST = (1, "SEMPOST sem_sel=2")
TAKE = (2, "SEMWAIT stall_res=1, sem_sel=2, wait_sem_cond=1")
PACK = (2, "PACR Last=1")
DONE = (1, "STALLWAIT stall_res=2, wait_res=0x810")


def test_vector_results_handed_over_without_a_wait() -> None:
    store = (1, "SFPSTORE 0, 0, 3, 0")
    (found,) = certain(hazards(log_of(INIT, store, POST, TAKE, PACK)))
    assert "STALLWAIT(STALL_SYNC, SFPU)" in found.missing
    assert hazards(log_of(INIT, store, DONE, POST, TAKE, PACK)) == []


def test_matrix_results_handed_over_without_a_wait_rest_on_the_scoreboard() -> None:
    found = hazards(log_of(INIT, (1, "MVMUL"), POST, TAKE, PACK))
    assert [h.severity for h in found] == [NOTE]
    assert hazards(log_of(INIT, (1, "MVMUL"), DONE, POST, TAKE, PACK)) == []


def test_matrix_results_taken_without_the_semaphore() -> None:
    (found,) = certain(hazards(log_of(INIT, (1, "MVMUL"), DONE, POST, PACK)))
    assert "SEMWAIT" in found.missing


def test_a_semaphore_wait_that_does_not_block_the_packer() -> None:
    idle = (2, "SEMWAIT stall_res=0x40, sem_sel=2, wait_sem_cond=1")
    assert certain(hazards(log_of(INIT, (1, "MVMUL"), DONE, POST, idle, PACK)))


def test_the_first_of_two_posts_is_all_that_a_wait_for_not_zero_promises() -> None:
    other = (1, "MVMUL", {column.DST: 512})
    late = {column.PACK_DST: 512}
    lines = (INIT, (1, "MVMUL"), DONE, POST, other, DONE, POST)
    assert hazards(log_of(*lines, TAKE, PACK)) == []
    assert certain(hazards(log_of(*lines, TAKE, (2, "PACR Last=1", late))))
    get = (2, "SEMGET sem_sel=2")
    assert hazards(log_of(*lines, TAKE, PACK, get, TAKE, (2, "PACR Last=1", late))) == []


def test_dst_overwritten_while_the_other_thread_packs() -> None:
    full = (1, "SEMWAIT stall_res=0x40, sem_sel=2, wait_sem_cond=2")
    packed = (2, "STALLWAIT stall_res=2, wait_res=8")
    get = (2, "SEMGET sem_sel=2")
    init = (1, "SEMINIT max_value=1, init_value=0, sem_sel=2")
    tile = (init, full, (1, "MVMUL"), DONE, POST, TAKE, PACK)
    assert certain(hazards(log_of(*tile, get, full, (1, "MVMUL"))))
    assert hazards(log_of(*tile, packed, get, full, (1, "MVMUL"))) == []
    assert certain(hazards(log_of(*tile, packed, get, (1, "MVMUL"))))


def test_dst_from_the_unpacker_needs_its_wait() -> None:
    to_dst = {column.UNPACK_REG2: 1 << 11, column.UNPACK_DEST: 64, column.UNPACK_X: 255 << 32}
    unpack = (0, "UNPACR", to_dst)
    post = (0, "SEMPOST sem_sel=4")
    take = (1, "SEMWAIT stall_res=0x140, sem_sel=4, wait_sem_cond=1")
    load = (1, "SFPLOAD 0, 0, 3, 0")
    (found,) = certain(hazards(log_of(unpack, post, take, load)))
    assert "UNPACK0" in found.missing
    wait = (0, "STALLWAIT stall_res=2, wait_res=2")
    assert hazards(log_of(unpack, wait, post, take, load)) == []


def test_a_mutex_orders_the_matrix_unit() -> None:
    get, give = "ATGETM 0", "ATRELM 0"
    assert certain(hazards(log_of((0, "ZEROACC clear_mode=3"), (1, "MVMUL"))))
    assert hazards(log_of((0, get), (0, "ZEROACC clear_mode=3"), (0, give), (1, get), (1, "MVMUL"))) == []


# --- sequences of the seeds -------------------------------------------------------------------------------------------

SEEDS = {
    "GPR seed, synchronization": (
        2,
        f"SETDMAREG 0x1234, 56\nSETDMAREG 0, 57\n{CFG_THCON}\nWRCFG 28, 0, 12\nNOP\nNOP\nPACR Last=1",
    ),
    "GPR seed, add1 pack thread": (
        2,
        "0x45000038\n0x45002039\n0x4502003A\n0x4508003B\n0xA2400001\n0xB01C000C\n0xB01D000D\nNOP\nNOP",
    ),
    "pack seed 17.1": (
        2,
        "SETC16 37, 260\nSETC16 38, 10272\nSETC16 39, 4384\n"
        "SETADCXY CntSetMask=4, BitMask=11\nSETADCZW CntSetMask=4, BitMask=15\n"
        + (
            "SEMWAIT stall_res=1, sem_sel=2, wait_sem_cond=1\nSETDMAREG 0x100, 24\nSETDMAREG 0, 25\n"
            "STALLWAIT 128, 9\nWRCFG 12, 0, 69\nDMANOP\nPACR\nPACR\nPACR\nPACR Last=1\n"
            "STALLWAIT 32, 8\nSTALLWAIT 64, 8\nZEROACC clear_mode=2\nSEMGET sem_sel=2\n"
        )
        * 3,
    ),
    "unpack seed 11.2": (
        0,
        (
            "SETADCZW CntSetMask=3, BitMask=15\nSTALLWAIT 8, 1024\n"
            "UNPACR Unpack_block_selection=0, OvrdThreadId=1, SetDatValid=1, Last=1\n"
            "UNPACR Unpack_block_selection=1, OvrdThreadId=1, SetDatValid=1, Last=1\n"
            "SEMGET sem_sel=0x20\nSETC16 41, 257\n"
        )
        * 3,
    ),
    "unpack seed 11.3": (
        0,
        (
            "UNPACR Unpack_block_selection=1, OvrdThreadId=1, SetDatValid=1, Last=1\nRDCFG 12, 124\n"
            "ADDDMAREG OpBisConst=0, ResultRegIndex=12, OpBRegIndex=12, OpARegIndex=18\nSTALLWAIT 128, 1\n"
            "WRCFG 12, 0, 124\nNOP\n"
        )
        * 3,
    ),
}


@pytest.mark.parametrize("name", SEEDS)
def test_the_sequences_of_the_seeds_raise_no_alarm(name: str) -> None:
    thread, text = SEEDS[name]
    lines: list[tuple[int, str]] = [(thread, line) for line in text.splitlines() if line]
    if "stall_res=1, sem_sel=2" in text:
        lines.insert(0, (thread, "SEMINIT max_value=15, init_value=8, sem_sel=2"))
    assert certain(hazards(log_of(*lines))) == []


def test_a_word_that_is_issued_later_and_through_the_matrix_unit_shows_that_an_earlier_one_of_another_thread_is() -> (
    None
):
    cleared, post = (2, "ZEROACC clear_mode=2"), (2, "SEMPOST sem_sel=4")
    take = (1, "SEMWAIT stall_res=0x140, sem_sel=4, wait_sem_cond=1")
    load = "SFPLOAD 0, 0, 3, 0"
    through = (1, f"SETRWC 0, 0, 0, 0, 0, 15\nSTALLWAIT stall_res=0x100, wait_res=0x10\n{load}")
    assert certain(hazards(log_of(cleared, post, take, (1, load))))
    assert certain(hazards(log_of(cleared, through)))  # in another run the SETRWC may be before the ZEROACC
    assert certain(hazards(log_of(cleared, post, take, through))) == []
