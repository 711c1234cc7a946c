;; Search for the end of a JSON object or array, 64 bytes per step, by the
;; algorithms of simdjson (Langdale and Lemire, "Parsing gigabytes of JSON per
;; second"). `node tools/assemble.ts` writes structure_program.ts from it.
;;
;; The memory has the nesting depth at 0, whether the position is in a string at 4
;; and whether it is escaped at 8, then the window of text from 64 on.
;;
;; `skip(position, length)` reads the bytes of the window from a position to a
;; length. Between them must be whole blocks of 64, unless the text ends there;
;; after them must be 64 bytes that are neither quote, backslash nor bracket. It
;; returns the position after the bracket that closes the first one, or -1, and
;; continues there once the window contains the next bytes.
(module
  (memory (export "memory") 1 1) ;; one page of 64 KiB
  (func (export "skip") (param $position i32) (param $length i32) (result i32)
    (local $depth i32)
    ;; The block: four times 16 bytes; and what is computed of each.
    (local $block0 v128) (local $block1 v128) (local $block2 v128) (local $block3 v128)
    (local $work0 v128) (local $work1 v128) (local $work2 v128) (local $work3 v128)
    (local $quote v128) (local $backslash v128) (local $brace_bit v128)
    (local $open_brace v128) (local $close_brace v128)
    ;; Masks with a bit for each byte of the block.
    (local $quotes i64) (local $backslashes i64)
    (local $escaping i64) ;; backslashes that are not escaped by the block before
    (local $escapes i64)
    (local $escaped i64) ;; bit 0: the next block's first byte is escaped
    (local $strings i64) ;; bytes between quotes
    (local $in_string i64) ;; all bits, if the next block begins in a string
    (local $opening i64) (local $closing i64) ;; brackets outside of strings
    (local $rest i64) (local $up_to i64)

    (local.set $quote (v128.const i8x16 0x22 0x22 0x22 0x22 0x22 0x22 0x22 0x22 0x22 0x22 0x22 0x22 0x22 0x22 0x22 0x22))
    (local.set $backslash (v128.const i8x16 0x5c 0x5c 0x5c 0x5c 0x5c 0x5c 0x5c 0x5c 0x5c 0x5c 0x5c 0x5c 0x5c 0x5c 0x5c 0x5c))
    ;; The bit in which braces differ from brackets.
    (local.set $brace_bit (v128.const i8x16 0x20 0x20 0x20 0x20 0x20 0x20 0x20 0x20 0x20 0x20 0x20 0x20 0x20 0x20 0x20 0x20))
    (local.set $open_brace (v128.const i8x16 0x7b 0x7b 0x7b 0x7b 0x7b 0x7b 0x7b 0x7b 0x7b 0x7b 0x7b 0x7b 0x7b 0x7b 0x7b 0x7b))
    (local.set $close_brace (v128.const i8x16 0x7d 0x7d 0x7d 0x7d 0x7d 0x7d 0x7d 0x7d 0x7d 0x7d 0x7d 0x7d 0x7d 0x7d 0x7d 0x7d))

    (local.set $depth (i32.load (i32.const 0)))
    (local.set $in_string
      (i64.sub (i64.const 0)
        (i64.and (i64.extend_i32_u (i32.load offset=4 (i32.const 0))) (i64.const 1))))
    (local.set $escaped (i64.extend_i32_u (i32.load offset=8 (i32.const 0))))

    (loop $next_block
      (if (i32.ge_s (local.get $position) (local.get $length))
        (then
          (i32.store (i32.const 0) (local.get $depth))
          (i32.store offset=4 (i32.const 0) (i32.wrap_i64 (local.get $in_string)))
          (i32.store offset=8 (i32.const 0) (i32.wrap_i64 (local.get $escaped)))
          (return (i32.const -1))))

      (local.set $block0 (v128.load offset=64 align=1 (local.get $position)))
      (local.set $block1 (v128.load offset=80 align=1 (local.get $position)))
      (local.set $block2 (v128.load offset=96 align=1 (local.get $position)))
      (local.set $block3 (v128.load offset=112 align=1 (local.get $position)))

      (local.set $quotes
        (i64.or
          (i64.or
            (i64.extend_i32_u (i8x16.bitmask (i8x16.eq (local.get $block0) (local.get $quote))))
            (i64.shl (i64.extend_i32_u (i8x16.bitmask (i8x16.eq (local.get $block1) (local.get $quote)))) (i64.const 16)))
          (i64.or
            (i64.shl (i64.extend_i32_u (i8x16.bitmask (i8x16.eq (local.get $block2) (local.get $quote)))) (i64.const 32))
            (i64.shl (i64.extend_i32_u (i8x16.bitmask (i8x16.eq (local.get $block3) (local.get $quote)))) (i64.const 48)))))

      (local.set $work0 (i8x16.eq (local.get $block0) (local.get $backslash)))
      (local.set $work1 (i8x16.eq (local.get $block1) (local.get $backslash)))
      (local.set $work2 (i8x16.eq (local.get $block2) (local.get $backslash)))
      (local.set $work3 (i8x16.eq (local.get $block3) (local.get $backslash)))
      (if
        (i32.or
          (v128.any_true
            (v128.or
              (v128.or (local.get $work0) (local.get $work1))
              (v128.or (local.get $work2) (local.get $work3))))
          (i32.wrap_i64 (local.get $escaped)))
        (then
          ;; Drops escaped quotes. Within a run of backslashes every other one
          ;; escapes; subtracting the start of the run from the odd positions finds
          ;; them in constant time.
          (local.set $backslashes
        (i64.or
          (i64.or
            (i64.extend_i32_u (i8x16.bitmask (local.get $work0)))
            (i64.shl (i64.extend_i32_u (i8x16.bitmask (local.get $work1))) (i64.const 16)))
          (i64.or
            (i64.shl (i64.extend_i32_u (i8x16.bitmask (local.get $work2))) (i64.const 32))
            (i64.shl (i64.extend_i32_u (i8x16.bitmask (local.get $work3))) (i64.const 48)))))
          (local.set $escaping
            (i64.and (local.get $backslashes)
              (i64.xor (local.get $escaped) (i64.const -1))))
          (local.set $escapes
            (i64.xor
              (i64.sub
                (i64.or
                  (i64.shl (local.get $escaping) (i64.const 1))
                  (i64.const 0xaaaaaaaaaaaaaaaa))
                (local.get $escaping))
              (i64.const 0xaaaaaaaaaaaaaaaa)))
          (local.set $quotes
            (i64.and (local.get $quotes)
              (i64.xor
                (i64.xor (local.get $escapes)
                  (i64.or (local.get $backslashes) (local.get $escaped)))
                (i64.const -1))))
          (local.set $escaped
            (i64.shr_u (i64.and (local.get $escapes) (local.get $backslashes))
              (i64.const 63)))))

      ;; The parity of the quotes up to each byte marks the bytes between quotes.
      (local.set $strings (local.get $quotes))
      (local.set $strings
        (i64.xor (local.get $strings) (i64.shl (local.get $strings) (i64.const 1))))
      (local.set $strings
        (i64.xor (local.get $strings) (i64.shl (local.get $strings) (i64.const 2))))
      (local.set $strings
        (i64.xor (local.get $strings) (i64.shl (local.get $strings) (i64.const 4))))
      (local.set $strings
        (i64.xor (local.get $strings) (i64.shl (local.get $strings) (i64.const 8))))
      (local.set $strings
        (i64.xor (local.get $strings) (i64.shl (local.get $strings) (i64.const 16))))
      (local.set $strings
        (i64.xor (local.get $strings) (i64.shl (local.get $strings) (i64.const 32))))
      (local.set $strings (i64.xor (local.get $strings) (local.get $in_string)))
      (local.set $in_string (i64.shr_s (local.get $strings) (i64.const 63)))

      (local.set $work0 (v128.or (local.get $block0) (local.get $brace_bit)))
      (local.set $work1 (v128.or (local.get $block1) (local.get $brace_bit)))
      (local.set $work2 (v128.or (local.get $block2) (local.get $brace_bit)))
      (local.set $work3 (v128.or (local.get $block3) (local.get $brace_bit)))
      (local.set $opening
        (i64.and
          (i64.or
          (i64.or
            (i64.extend_i32_u (i8x16.bitmask (i8x16.eq (local.get $work0) (local.get $open_brace))))
            (i64.shl (i64.extend_i32_u (i8x16.bitmask (i8x16.eq (local.get $work1) (local.get $open_brace)))) (i64.const 16)))
          (i64.or
            (i64.shl (i64.extend_i32_u (i8x16.bitmask (i8x16.eq (local.get $work2) (local.get $open_brace)))) (i64.const 32))
            (i64.shl (i64.extend_i32_u (i8x16.bitmask (i8x16.eq (local.get $work3) (local.get $open_brace)))) (i64.const 48))))
          (i64.xor (local.get $strings) (i64.const -1))))
      (local.set $closing
        (i64.and
          (i64.or
          (i64.or
            (i64.extend_i32_u (i8x16.bitmask (i8x16.eq (local.get $work0) (local.get $close_brace))))
            (i64.shl (i64.extend_i32_u (i8x16.bitmask (i8x16.eq (local.get $work1) (local.get $close_brace)))) (i64.const 16)))
          (i64.or
            (i64.shl (i64.extend_i32_u (i8x16.bitmask (i8x16.eq (local.get $work2) (local.get $close_brace)))) (i64.const 32))
            (i64.shl (i64.extend_i32_u (i8x16.bitmask (i8x16.eq (local.get $work3) (local.get $close_brace)))) (i64.const 48))))
          (i64.xor (local.get $strings) (i64.const -1))))

      ;; Where the value may end in this block, each closing bracket is tried.
      (if
        (i32.ge_s
          (i32.wrap_i64 (i64.popcnt (local.get $closing)))
          (local.get $depth))
        (then
          (local.set $rest (local.get $closing))
          (block $not_here
            (loop $next_bracket
              (br_if $not_here (i64.eqz (local.get $rest)))
              (local.set $up_to
                (i64.xor (local.get $rest) (i64.sub (local.get $rest) (i64.const 1))))
              (if
                (i32.eqz
                  (i32.add (local.get $depth)
                    (i32.wrap_i64
                      (i64.sub
                        (i64.popcnt (i64.and (local.get $opening) (local.get $up_to)))
                        (i64.popcnt (i64.and (local.get $closing) (local.get $up_to)))))))
                (then
                  (return
                    (i32.add
                      (i32.add (local.get $position)
                        (i32.wrap_i64 (i64.ctz (local.get $rest))))
                      (i32.const 1)))))
              (local.set $rest
                (i64.and (local.get $rest) (i64.sub (local.get $rest) (i64.const 1))))
              (br $next_bracket)))))

      (local.set $depth
        (i32.add (local.get $depth)
          (i32.wrap_i64
            (i64.sub (i64.popcnt (local.get $opening)) (i64.popcnt (local.get $closing))))))
      (local.set $position (i32.add (local.get $position) (i32.const 64)))
      (br $next_block))
    (unreachable)))
